-- owner: ledger

-- The movements of each hour by account of money and kind, so that days, months and the journal read no transfers. An account that exists
-- for each tenant is its class, such as wallet:*. A node of the version before neither reads nor writes these tables.
CREATE TABLE ledger_hours (
  asset     TEXT    NOT NULL,
  at        INTEGER NOT NULL, -- beginning of the hour
  account   TEXT    NOT NULL,
  kind      TEXT    NOT NULL,
  moved_in  INTEGER NOT NULL CHECK (moved_in >= 0),
  moved_out INTEGER NOT NULL CHECK (moved_out >= 0),
  n         INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY (asset, at, account, kind)
) STRICT, WITHOUT ROWID;

-- At most one row. The hours before summed_to are summed; later rows of ledger_hours do not count. version grows with each change: of two
-- nodes that sum at once the second fails, and so does one that sums while a late transfer is posted.
CREATE TABLE ledger_hours_state (
  one       INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  version   INTEGER NOT NULL,
  summed_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
