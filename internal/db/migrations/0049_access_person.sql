-- owner: access

-- The person whose key it is, by id: a member of the account at the time. Empty: the account's own, or a key from before
-- this column, whose column member has a free text.
ALTER TABLE api_keys ADD COLUMN person TEXT NOT NULL DEFAULT '';
-- A free text that tells keys apart. It names nobody.
ALTER TABLE api_keys ADD COLUMN label TEXT NOT NULL DEFAULT '';
