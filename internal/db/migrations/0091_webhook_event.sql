-- owner: webhook
-- The name of an event that is not about a payment, such as sms.received. The check of kind names three kinds, and another check would
-- rewrite the table, so kind is payout then and means nothing. Expand first: nodes of the version before deliver such an event as it is.

ALTER TABLE webhook_events ADD COLUMN event TEXT NOT NULL DEFAULT '';
