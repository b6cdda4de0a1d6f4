-- owner: tenant
-- The address of an account for the event sms.received. Empty: none. Expand first: nodes of the version before write rows without it.

ALTER TABLE tenants ADD COLUMN sms_url TEXT NOT NULL DEFAULT '';
