-- owner: approval

-- The people who may not approve what an API key requested, by id with spaces between: who made the key or one that it
-- replaced, and whose key it is.
ALTER TABLE acts ADD COLUMN barred TEXT NOT NULL DEFAULT '';
