-- owner: tenant
-- What a caller's address must be on the allow-list for: payouts alone, or whatever spends.

ALTER TABLE tenants ADD COLUMN listed TEXT NOT NULL DEFAULT 'payouts' CHECK (listed IN ('payouts', 'spending'));
