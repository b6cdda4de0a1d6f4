-- owner: payments

-- voucher_at is when the provider of the current attempt asked for a voucher of the payer; NULL: it did not.
ALTER TABLE payments ADD COLUMN voucher_at INTEGER;
