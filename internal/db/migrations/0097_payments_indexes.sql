-- owner: payments

-- An index of payees needs no tenant: few tenants pay the same account, and the tenant was half of each entry. A node of the version before
-- uses it too.
DROP INDEX payments_payee;
CREATE INDEX payments_payee ON payments (account, created_at) WHERE kind = 'payout';

-- A ProviderReference is only looked up as a whole. PostgreSQL keeps its hash instead of its text.
-- postgres: DROP INDEX payments_provider_reference;
-- postgres: CREATE INDEX payments_provider_reference ON payments USING hash (provider_reference);
