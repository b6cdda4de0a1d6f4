-- owner: batch

-- The name under which a provider has the account of a row, and how it compares with the row's own. changed: another name was found
-- between the request and its approval.
ALTER TABLE batch_rows ADD COLUMN registered TEXT NOT NULL DEFAULT '';
ALTER TABLE batch_rows ADD COLUMN named TEXT NOT NULL DEFAULT '' CHECK (named IN ('', 'same', 'near', 'different', 'found', 'unknown', 'changed'));
CREATE INDEX batch_rows_named ON batch_rows (batch, named, line) WHERE named NOT IN ('', 'same', 'found');
CREATE INDEX batch_rows_bad ON batch_rows (batch, line) WHERE state = 'bad';

-- Names are looked up from the line names_next on; 0: no lookup runs. names_at is when the oldest name of the batch was looked up.
-- tally has the numbers of rows by state and name, JSON; empty: they are counted.
ALTER TABLE batches ADD COLUMN names_scope TEXT NOT NULL DEFAULT '' CHECK (names_scope IN ('', 'banks', 'all'));
ALTER TABLE batches ADD COLUMN names_next INTEGER NOT NULL DEFAULT 0 CHECK (names_next >= 0);
ALTER TABLE batches ADD COLUMN names_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN tally TEXT NOT NULL DEFAULT '';
-- The change request that sends the batch.
ALTER TABLE batches ADD COLUMN request TEXT NOT NULL DEFAULT '';

-- How many names were looked up for drafts of an account in a day.
CREATE TABLE batch_lookups (
  tenant TEXT NOT NULL,
  day INTEGER NOT NULL, -- since 1970
  asked INTEGER NOT NULL CHECK (asked >= 0),
  PRIMARY KEY (tenant, day)
);
