-- owner: tenant
-- Below which balance of the wallet an account wants to be warned. 0: never. Expand first: nodes of the version before write rows
-- without it.

ALTER TABLE tenants ADD COLUMN low_balance INTEGER NOT NULL DEFAULT 0 CHECK (low_balance >= 0);
