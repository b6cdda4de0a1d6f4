-- owner: recovery
-- Where the database is, so that a copy of it that went back in time is recognised.

-- One row, from the first start on.
CREATE TABLE recovery_place (
  id           INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  installation TEXT    NOT NULL, -- the same in all copies
  life         TEXT    NOT NULL, -- another one since each recovery began
  system       TEXT    NOT NULL, -- of PostgreSQL; empty where it is not known
  timeline     TEXT    NOT NULL,
  tables       TEXT    NOT NULL,
  token        TEXT    NOT NULL, -- stands also in the file beside a SQLite database; another one at each start
  restored     TEXT    NOT NULL, -- the last restore that is known here
  noted_at     INTEGER NOT NULL
);

-- The lives of the database, the present one among them.
CREATE TABLE recovery_lives (
  life     TEXT    NOT NULL PRIMARY KEY,
  begun_at INTEGER NOT NULL
);
