-- owner: messaging
-- What requests were answered that have no row of their own, or none that stays, by their Idempotency-Key.
CREATE TABLE answers (
  tenant           TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  idempotency_hash TEXT NOT NULL,
  made             TEXT NOT NULL, -- JSON
  created_at       INTEGER NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
);

CREATE INDEX answers_kept ON answers (created_at);
