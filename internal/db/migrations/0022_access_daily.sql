-- owner: access
-- What a key may take out of the wallet in a day, in pesewas; 0: all that is there.

ALTER TABLE api_keys ADD COLUMN daily INTEGER NOT NULL DEFAULT 0 CHECK (daily >= 0);
