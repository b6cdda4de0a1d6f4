-- owner: statement

-- The sums of each 1,000 movements of a wallet or of SMS credits. Movements are only added, so a block does not change. A node of the version
-- before neither reads nor writes it.
CREATE TABLE statement_blocks (
  account TEXT    NOT NULL,
  block   INTEGER NOT NULL CHECK (block >= 0), -- has the movements from 1,000 * block + 1 to 1,000 * block + 1,000
  opening INTEGER NOT NULL,
  closing INTEGER NOT NULL,
  sums    TEXT    NOT NULL, -- JSON
  PRIMARY KEY (account, block)
) STRICT, WITHOUT ROWID;
