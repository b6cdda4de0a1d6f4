-- owner: batch

-- A row to a bank account has the bank's id. unsettled is the distinct text, or the beginning of the number, that a person gives a
-- network or a bank for; empty: the row has one.
ALTER TABLE batch_rows ADD COLUMN bank TEXT NOT NULL DEFAULT '';
ALTER TABLE batch_rows ADD COLUMN unsettled TEXT NOT NULL DEFAULT '';
CREATE INDEX batch_rows_unsettled ON batch_rows (batch, unsettled) WHERE unsettled <> '';
