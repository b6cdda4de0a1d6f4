-- owner: access
-- Who may call, from where, how often, and what operators did.

-- One row: the fingerprint of the master key that this database belongs to.
CREATE TABLE installation (
  id          INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  fingerprint TEXT NOT NULL,
  created_at  INTEGER NOT NULL
);

-- Only the hash of a key is here. Times of 0 are never.
CREATE TABLE api_keys (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  hash        TEXT NOT NULL,
  hint        TEXT NOT NULL,
  member      TEXT NOT NULL,
  scopes      TEXT NOT NULL CHECK (scopes <> ''),
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  revoked_at  INTEGER NOT NULL,
  replaced_by TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash);

CREATE TABLE payout_ips (
  tenant     TEXT NOT NULL,
  prefix     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, prefix)
);

-- One row a tenant and limit: how much of the window that began then is used.
CREATE TABLE rate_counters (
  tenant       TEXT NOT NULL,
  name         TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  used         INTEGER NOT NULL CHECK (used > 0),
  PRIMARY KEY (tenant, name)
);

CREATE INDEX rate_counters_window ON rate_counters (window_start);

-- Rows are added and never changed. The id is made in order of time.
CREATE TABLE audit_log (
  tenant  TEXT NOT NULL,
  id      TEXT NOT NULL,
  at      INTEGER NOT NULL,
  actor   TEXT NOT NULL CHECK (actor <> ''),
  action  TEXT NOT NULL CHECK (action <> ''),
  subject TEXT NOT NULL,
  reason  TEXT NOT NULL,
  details TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX audit_log_id ON audit_log (id);
