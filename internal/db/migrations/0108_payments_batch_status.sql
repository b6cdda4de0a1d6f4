-- owner: payments

-- The status of a payout of a batch, for the counts of the batch; empty for all other payments. An index with the status itself is
-- touched by every settlement: PostgreSQL then writes a new entry into each index of the table.
--
-- Expand first: a node of the version before leaves the column empty or at 'pending'. So only a final status counts by the index, and the
-- other rows are read.
ALTER TABLE payments ADD COLUMN batch_status TEXT NOT NULL DEFAULT '';
DROP INDEX payments_batch;
CREATE INDEX payments_batch ON payments (batch, batch_status) WHERE batch <> '';
