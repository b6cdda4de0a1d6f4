-- owner: payments

-- The payouts of a batch whose outcome is still to come.
CREATE INDEX payments_batch_open ON payments (batch) WHERE batch <> '' AND status = 'pending' AND escalated_at IS NULL;
