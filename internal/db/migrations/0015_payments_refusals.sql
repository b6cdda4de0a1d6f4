-- owner: payments

-- A refusal that the provider has not confirmed when asked stands on the open
-- payment, for whoever takes it over.
ALTER TABLE payments ADD COLUMN refusal TEXT NOT NULL DEFAULT '' CHECK (refusal IN ('', 'clear', 'bare', 'barred'));
ALTER TABLE payments ADD COLUMN refusal_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE payments ADD COLUMN refused_at INTEGER NOT NULL DEFAULT 0;
-- What a provider said last of a final payment that it has contradicted before;
-- empty: the opposite of the status.
ALTER TABLE payments ADD COLUMN last_word TEXT NOT NULL DEFAULT '' CHECK (last_word IN ('', 'success', 'failed'));

-- Every word of a provider that contradicted the one before it.
CREATE TABLE payment_contradictions (
  id TEXT NOT NULL PRIMARY KEY,
  payment TEXT NOT NULL,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  event TEXT NOT NULL,
  said TEXT NOT NULL CHECK (said IN ('success', 'failed')),
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX payment_contradictions_payment ON payment_contradictions (payment);
CREATE INDEX payment_contradictions_at ON payment_contradictions (at);

INSERT INTO payment_contradictions (id, payment, tenant, kind, event, said, code, message, at)
SELECT id, id, tenant, kind, CASE WHEN status = 'success' THEN 'reversed' ELSE 'found_paid' END,
  CASE WHEN status = 'success' THEN 'failed' ELSE 'success' END, '', '', turned_at
FROM payments WHERE turned_at IS NOT NULL;
