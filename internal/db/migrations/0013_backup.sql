-- owner: backup
-- What is known of this database's copies.

-- One row: the last backup that was made whole. Times of 0 are never.
CREATE TABLE last_backup (
  id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  backup  TEXT    NOT NULL,
  made_at INTEGER NOT NULL, -- not later than the moment that it holds
  took    INTEGER NOT NULL, -- microseconds
  bytes   INTEGER NOT NULL,
  file    TEXT    NOT NULL
);

-- A row for each time that this database was restored from a backup: what was committed after made_at is forgotten here,
-- and by nobody else. The row is written with the restored rows, before anybody can open the database.
CREATE TABLE restores (
  id          TEXT    NOT NULL PRIMARY KEY,
  backup      TEXT    NOT NULL,
  made_at     INTEGER NOT NULL, -- not later than the moment that the backup holds
  restored_at INTEGER NOT NULL
);
