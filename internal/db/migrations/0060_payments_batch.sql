-- owner: payments

-- A payout of a batch is paid by the batch's reserve instead of the wallet. Expand first: nodes of the release before insert and
-- read payments without the column, and they settle such a payout as any other.
ALTER TABLE payments ADD COLUMN batch TEXT NOT NULL DEFAULT '' CHECK (batch = '' OR kind = 'payout');
