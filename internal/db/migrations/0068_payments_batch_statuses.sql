-- owner: payments

-- The payouts of a batch by their status.
DROP INDEX payments_batch_open;
CREATE INDEX payments_batch ON payments (batch, status) WHERE batch <> '';
