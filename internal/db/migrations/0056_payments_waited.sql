-- owner: payments

-- waited_for is the time at which the payment's last submission might begin (sending_at, else created_at), written when the process that
-- follows the payment has seen two minutes pass since then: an operator may decide. A later submission changes sending_at, so a mark of
-- before does not count. A node of the release before neither reads nor writes it.
ALTER TABLE payments ADD COLUMN waited_for INTEGER NOT NULL DEFAULT 0;
