-- owner: approval
-- Acts of people that move money, keys or roles: what was asked for, word by word, and who checked it. The digest is over
-- everything that a checker is shown.

CREATE TABLE acts (
  id         TEXT    NOT NULL PRIMARY KEY,
  kind       TEXT    NOT NULL,
  tenant     TEXT    NOT NULL, -- whom it concerns; empty: the installation
  payload    TEXT    NOT NULL, -- canonical JSON, with the values that the maker saw
  sentence   TEXT    NOT NULL, -- the same for people
  reason     TEXT    NOT NULL CHECK (reason <> ''),
  maker      TEXT    NOT NULL,
  maker_name TEXT    NOT NULL,
  origin     TEXT    NOT NULL,
  digest     TEXT    NOT NULL CHECK (length(digest) = 64),
  needs      INTEGER NOT NULL CHECK (needs BETWEEN 0 AND 2), -- checkers
  state      TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'rejected', 'withdrawn', 'expired', 'failed')),
  made_at    INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL DEFAULT 0,
  note       TEXT    NOT NULL DEFAULT ''  -- why it was rejected, or failed
);

CREATE INDEX acts_of_tenant ON acts (tenant, id);

CREATE INDEX acts_waiting ON acts (expires_at) WHERE state = 'waiting';

CREATE TABLE act_checks (
  act     TEXT    NOT NULL,
  checker TEXT    NOT NULL,
  name    TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (act, checker)
);
