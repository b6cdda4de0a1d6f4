-- owner: audit

-- The whole check of the log, which goes on where it stopped. At most one row. A node of the version before neither reads nor writes it.
CREATE TABLE audit_whole (
  id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  version  INTEGER NOT NULL, -- grows with each change: of two at once the second fails
  stage    TEXT    NOT NULL CHECK (stage IN ('', 'entries', 'links')), -- empty while none runs
  entry    TEXT    NOT NULL, -- the entries up to this id are in the chain
  number   INTEGER NOT NULL, -- the links up to this one are checked
  hash     TEXT    NOT NULL, -- of that link
  found    TEXT    NOT NULL, -- faults of the check that runs, in JSON
  result   TEXT    NOT NULL, -- those of the last check that ended
  begun_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  mac      TEXT    NOT NULL  -- keyed hash of the position: one that was not written with the key begins anew
);
