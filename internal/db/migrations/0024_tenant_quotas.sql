-- owner: tenant
-- What a tenant may store at most. 0: the setting of the installation holds; -1: no bound.

ALTER TABLE tenants ADD COLUMN quota_contacts INTEGER NOT NULL DEFAULT 0 CHECK (quota_contacts >= -1);
ALTER TABLE tenants ADD COLUMN quota_groups INTEGER NOT NULL DEFAULT 0 CHECK (quota_groups >= -1);
ALTER TABLE tenants ADD COLUMN quota_sender_ids INTEGER NOT NULL DEFAULT 0 CHECK (quota_sender_ids >= -1);
ALTER TABLE tenants ADD COLUMN quota_campaigns INTEGER NOT NULL DEFAULT 0 CHECK (quota_campaigns >= -1);
