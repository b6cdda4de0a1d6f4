-- owner: closing

-- The days that are closed, one list for each money. day and previous count days since 1970-01-01, in Accra. A day closes once, and only
-- behind the day before it: previous must be there. While a later day is closed, its row cannot be taken away, so the last day alone can be
-- opened again. revision counts how often a day was closed.
--
-- Expand first: a node of the release before reads and writes none of these tables.
CREATE TABLE closed_days (
  asset TEXT NOT NULL,
  day INTEGER NOT NULL,
  previous INTEGER,
  revision INTEGER NOT NULL CHECK (revision > 0),
  act TEXT NOT NULL,
  closed_at INTEGER NOT NULL,
  PRIMARY KEY (asset, day),
  CHECK (previous IS NULL OR previous = day - 1),
  FOREIGN KEY (asset, previous) REFERENCES closed_days (asset, day)
) STRICT;
CREATE UNIQUE INDEX closed_days_first ON closed_days (asset) WHERE previous IS NULL;

-- The figures that were signed with a day, in pesewas as people count them: money that we have is above zero. late is the sum of movements
-- dated into days that were closed before. theirs is the balance of the statement; NULL: none was given.
CREATE TABLE closed_accounts (
  asset TEXT NOT NULL,
  day INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  account TEXT NOT NULL,
  opening INTEGER NOT NULL,
  moved_in INTEGER NOT NULL,
  moved_out INTEGER NOT NULL,
  late INTEGER NOT NULL,
  closing INTEGER NOT NULL,
  theirs INTEGER,
  explained INTEGER NOT NULL,
  PRIMARY KEY (asset, day, revision, account),
  CHECK (closing = opening + moved_in - moved_out + late)
) STRICT;

-- The movements of an account by kind. of_day is the day of their dates: the closed day itself, or an earlier one that was closed already.
CREATE TABLE closed_moves (
  asset TEXT NOT NULL,
  day INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  account TEXT NOT NULL,
  of_day INTEGER NOT NULL,
  kind TEXT NOT NULL,
  moved_in INTEGER NOT NULL,
  moved_out INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (asset, day, revision, account, of_day, kind),
  CHECK (of_day <= day)
) STRICT;

-- Closing balances of statements, as people typed them.
CREATE TABLE day_balances (
  asset TEXT NOT NULL,
  day INTEGER NOT NULL,
  account TEXT NOT NULL,
  theirs INTEGER NOT NULL,
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (asset, day, account)
) STRICT;

-- Exceptions that explain a part of the difference between a statement and our books.
CREATE TABLE day_exceptions (
  id TEXT NOT NULL PRIMARY KEY,
  asset TEXT NOT NULL,
  day INTEGER NOT NULL,
  account TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount <> 0),
  text TEXT NOT NULL CHECK (text <> ''),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX day_exceptions_of ON day_exceptions (asset, day, account);

-- Days that were opened again, with the reason.
CREATE TABLE reopened_days (
  asset TEXT NOT NULL,
  day INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  act TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason <> ''),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (asset, day, revision)
) STRICT;

-- The accountant's codes of accounts of the ledger, and of classes of them such as wallet:*.
CREATE TABLE account_codes (
  account TEXT NOT NULL PRIMARY KEY CHECK (account <> ''),
  code TEXT NOT NULL CHECK (code <> ''),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
