-- owner: access

-- Notices look every five minutes for keys that expire soon.
CREATE INDEX api_keys_expires ON api_keys (expires_at);
