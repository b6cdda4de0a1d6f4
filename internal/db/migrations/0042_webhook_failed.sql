-- owner: webhook
-- An account lists and replays its own webhooks that were given up: found by the account, and not among those of all others.
CREATE INDEX webhook_events_failed_of ON webhook_events (tenant, failed_at, id) WHERE failed_at > 0;
