-- owner: webhook
-- The trace context of the request that a payment came with. Every attempt to deliver its events carries it.
ALTER TABLE webhook_events ADD COLUMN trace TEXT NOT NULL DEFAULT '';
