-- owner: payments

-- What a tenant paid to an account lately.
CREATE INDEX payments_payee ON payments (tenant, account, created_at) WHERE kind = 'payout';
