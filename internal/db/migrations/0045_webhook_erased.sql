-- owner: webhook
-- An event from which a person was erased has other bytes than those that its customer got, or would have got: it is not sent again.
ALTER TABLE webhook_events ADD COLUMN erased INTEGER NOT NULL DEFAULT 0 CHECK (erased IN (0, 1));
UPDATE webhook_events SET erased = 1 WHERE body LIKE '%"phone_number":"erased"%';
