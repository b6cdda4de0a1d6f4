-- owner: identity

-- An invitation is a link and a code. code is a hash over both texts; tries counts the wrong codes, of which five end the link.
-- An invitation without a code does not work.
ALTER TABLE sign_in_links ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE sign_in_links ADD COLUMN tries INTEGER NOT NULL DEFAULT 0 CHECK (tries BETWEEN 0 AND 5);
-- Who invited or last reset the person, for people.
ALTER TABLE people ADD COLUMN invited_by TEXT NOT NULL DEFAULT '';
-- Who alone had both the link and the code: the id of a person, or 'machine' for a command without one. Empty: nobody had both.
ALTER TABLE people ADD COLUMN sponsor TEXT NOT NULL DEFAULT '';
