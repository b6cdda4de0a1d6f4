-- owner: approval

-- The API key that asked, for an act that no person made by hand.
ALTER TABLE acts ADD COLUMN access_key TEXT NOT NULL DEFAULT '';
-- Whose key it is, as its maker wrote it.
ALTER TABLE acts ADD COLUMN member TEXT NOT NULL DEFAULT '';
