-- owner: tenant
-- Who gets the money of airtime that mobile money paid for and that cannot be delivered: the account's wallet, or the payer by a refund.
-- Expand first: nodes of the version before write rows without it, and leave the money in the wallet.

ALTER TABLE tenants ADD COLUMN refund_airtime TEXT NOT NULL DEFAULT 'wallet' CHECK (refund_airtime IN ('wallet', 'payer'));
