-- owner: tenant
-- The e-mail address of an account, for providers that ask for the customer's, and whether its clients send the payers' vouchers.
-- Expand first: nodes of the version before write rows without them, and such accounts get no provider that needs them.

ALTER TABLE tenants ADD COLUMN email TEXT NOT NULL DEFAULT '';
ALTER TABLE tenants ADD COLUMN voucher INTEGER NOT NULL DEFAULT 0 CHECK (voucher IN (0, 1));
