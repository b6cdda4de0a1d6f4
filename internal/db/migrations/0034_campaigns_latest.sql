-- owner: messaging
-- The campaigns of all tenants, newest first, and one of them by its id alone.

CREATE INDEX campaigns_latest ON campaigns (id);
