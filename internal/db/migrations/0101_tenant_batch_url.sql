-- owner: tenant
-- The address of an account for the event batch.finished. Empty: none. Expand first: nodes of the version before write rows without it.

ALTER TABLE tenants ADD COLUMN batch_url TEXT NOT NULL DEFAULT '';
