-- owner: tenant
-- What a request is answered whose reference was used before.

ALTER TABLE tenants ADD COLUMN duplicates TEXT NOT NULL DEFAULT 'refuse' CHECK (duplicates IN ('refuse', 'repeat'));
