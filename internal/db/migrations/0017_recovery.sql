-- owner: recovery
-- A database that went back in time, and what is done about it.

-- One row, from the first recovery on.
CREATE TABLE recovery (
  id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  phase    TEXT    NOT NULL CHECK (phase IN ('ended', 'closed', 'open')),
  cause    TEXT    NOT NULL,
  begun_at INTEGER NOT NULL,
  since    INTEGER NOT NULL, -- what was committed after this moment may be forgotten; 0: nobody knows
  reason   TEXT    NOT NULL,
  actor    TEXT    NOT NULL
);

-- What operators let through in this recovery: a rail that need not answer, a customer whose purchases may go without a key.
CREATE TABLE recovery_exceptions (
  kind   TEXT    NOT NULL CHECK (kind IN ('rail', 'tenant')),
  name   TEXT    NOT NULL, -- of a rail with its mode: hubtel/live
  reason TEXT    NOT NULL,
  actor  TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
);

-- Requests that a provider has done in the life before and that cannot be taken over as they are.
CREATE TABLE recovery_conflicts (
  tenant             TEXT    NOT NULL,
  kind               TEXT    NOT NULL,
  reference          TEXT    NOT NULL,
  provider_reference TEXT    NOT NULL,
  rail               TEXT    NOT NULL,
  amount             INTEGER NOT NULL,
  why                TEXT    NOT NULL,
  at                 INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, reference)
);

-- Every provider's account that was ever used, by a fingerprint of it.
CREATE TABLE recovery_rails (
  rail        TEXT    NOT NULL,
  mode        TEXT    NOT NULL,
  fingerprint TEXT    NOT NULL,
  seen_at     INTEGER NOT NULL,
  PRIMARY KEY (rail, mode, fingerprint)
);
