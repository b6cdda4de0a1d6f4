-- owner: access

-- The person who made the key and has seen its text; empty: made before this was written down, or by a command without a person.
ALTER TABLE api_keys ADD COLUMN maker TEXT NOT NULL DEFAULT '';
