-- owner: route

-- A row means paused: the provider gets no new work of this operation ('*': none at all).
CREATE TABLE provider_pauses (
  mode      TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  provider  TEXT    NOT NULL,
  operation TEXT    NOT NULL,
  reason    TEXT    NOT NULL,
  actor     TEXT    NOT NULL,
  paused_at INTEGER NOT NULL,
  PRIMARY KEY (mode, provider, operation)
);

-- A row means that the circuit breaker is open or half-open; a closed one has none.
CREATE TABLE provider_breakers (
  mode        TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  provider    TEXT    NOT NULL,
  operation   TEXT    NOT NULL,
  opened_at   INTEGER NOT NULL,
  open_until  INTEGER NOT NULL,
  hold        INTEGER NOT NULL CHECK (hold > 0), -- microseconds that it stays open
  probe_until INTEGER NOT NULL,                  -- whoever set it may try once until then
  why         TEXT    NOT NULL,
  PRIMARY KEY (mode, provider, operation)
);

-- Which providers serve what, best first; '*' in tenant, mode or channel is every one.
CREATE TABLE provider_routes (
  tenant     TEXT    NOT NULL,
  mode       TEXT    NOT NULL CHECK (mode IN ('test', 'live', '*')),
  operation  TEXT    NOT NULL,
  channel    TEXT    NOT NULL, -- a network, or a bank id
  providers  TEXT    NOT NULL, -- names joined by commas
  actor      TEXT    NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, mode, operation, channel)
);

-- What was said to providers and what they answered, redacted. Pruned by age.
CREATE TABLE provider_exchanges (
  id        TEXT    NOT NULL,
  reference TEXT    NOT NULL, -- ProviderReference without hyphens; empty when it is about no payment
  at        INTEGER NOT NULL,
  took      INTEGER NOT NULL,
  provider  TEXT    NOT NULL,
  mode      TEXT    NOT NULL,
  operation TEXT    NOT NULL,
  method    TEXT    NOT NULL,
  url       TEXT    NOT NULL,
  status    INTEGER NOT NULL, -- 0: no answer
  request   TEXT    NOT NULL,
  answer    TEXT    NOT NULL,
  written   INTEGER NOT NULL CHECK (written IN (0, 1)),
  error     TEXT    NOT NULL,
  PRIMARY KEY (at, id) -- by time, in which it is read and pruned: a busy table has as few indexes as it can
);
CREATE INDEX provider_exchanges_by_reference ON provider_exchanges (reference, at);

-- The catalogues. The key is ours for ever; the id is what clients send and operators may change.
CREATE TABLE airtime_networks (
  network  TEXT    NOT NULL PRIMARY KEY,
  id       TEXT    NOT NULL UNIQUE,
  name     TEXT    NOT NULL,
  status   TEXT    NOT NULL CHECK (status IN ('active', 'inactive')),
  position INTEGER NOT NULL
);

CREATE TABLE data_services (
  service  TEXT    NOT NULL PRIMARY KEY,
  id       TEXT    NOT NULL UNIQUE,
  name     TEXT    NOT NULL,
  network  TEXT    NOT NULL,
  status   TEXT    NOT NULL CHECK (status IN ('active', 'inactive')),
  position INTEGER NOT NULL
);

CREATE TABLE banks (
  code   TEXT NOT NULL PRIMARY KEY, -- sort code
  id     TEXT NOT NULL UNIQUE,
  name   TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'inactive'))
);

CREATE TABLE bank_codes (
  bank     TEXT NOT NULL, -- sort code
  provider TEXT NOT NULL,
  code     TEXT NOT NULL, -- empty: this provider does not reach the bank
  PRIMARY KEY (bank, provider)
);

CREATE TABLE number_prefixes (
  prefix  TEXT NOT NULL PRIMARY KEY, -- local form, such as 024
  network TEXT NOT NULL              -- empty: nobody's
);
