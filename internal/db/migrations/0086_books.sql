-- owner: books

-- Checks of the books. 'recent' checks what is newer than the last proof, every ten minutes; 'full' checks every row, in sets. A node of
-- the version before neither reads nor writes these tables.
CREATE TABLE book_checks (
  name      TEXT    NOT NULL PRIMARY KEY CHECK (name IN ('recent', 'full')),
  version   INTEGER NOT NULL, -- grows with each change: of two at once the second fails
  stage     TEXT    NOT NULL, -- of the full check: the rows that it reads now; empty while none runs
  position  TEXT    NOT NULL, -- the last row of the stage that was checked
  next      INTEGER NOT NULL, -- the transfers before this time are checked
  payments  INTEGER NOT NULL, -- checked
  transfers INTEGER NOT NULL, -- checked
  found     TEXT    NOT NULL, -- problems by book, in JSON, of the check that runs or ran
  result    TEXT    NOT NULL, -- those of the last check that ended
  requested_at INTEGER NOT NULL,
  begun_at  INTEGER NOT NULL,
  ended_at  INTEGER NOT NULL
);

-- What the checked transfers moved, by account without a floor.
CREATE TABLE book_sums (
  name    TEXT    NOT NULL,
  asset   TEXT    NOT NULL,
  account TEXT    NOT NULL,
  moved   INTEGER NOT NULL,
  PRIMARY KEY (name, asset, account)
);
