-- owner: payments

-- One row a payment. The key is in the order of the histories (tenant, kind,
-- newest first by id, a UUIDv7 of created_at), so that they need no index of
-- their own. The current attempt lives on the row: an ordinary payment writes
-- it at acceptance and at settlement and never in between.
CREATE TABLE payments (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('collection', 'payout', 'topup', 'bundle', 'transfer')),
  id TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  channel TEXT NOT NULL,
  reference TEXT NOT NULL,
  provider_reference TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  charges INTEGER NOT NULL CHECK (charges >= 0),
  fee_bearer TEXT NOT NULL,
  plan INTEGER NOT NULL,
  account TEXT NOT NULL,
  account_name TEXT NOT NULL,
  bank_id TEXT NOT NULL,
  label TEXT NOT NULL,
  callback_url TEXT NOT NULL,
  access_key TEXT NOT NULL,
  idempotency_key TEXT,
  idempotency_hash TEXT NOT NULL,
  parent TEXT NOT NULL,
  child TEXT NOT NULL,
  details TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('waiting', 'pending', 'success', 'failed', 'declined', 'invalid')),
  reason TEXT NOT NULL,
  refused INTEGER NOT NULL,
  rail TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  attempt_reference TEXT NOT NULL,
  posts INTEGER NOT NULL,
  sending INTEGER NOT NULL,
  class TEXT NOT NULL,
  upstream_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  settled_at INTEGER NOT NULL,
  escalated_at INTEGER,
  turned_at INTEGER,
  PRIMARY KEY (tenant, kind, id),
  CHECK ((settled_at = 0) = (status IN ('waiting', 'pending'))),
  CHECK (status NOT IN ('declined', 'invalid') OR kind = 'collection'),
  CHECK (status <> 'waiting' OR (kind = 'topup' AND parent <> ''))
);
CREATE UNIQUE INDEX payments_reference ON payments (tenant, kind, reference);
-- A callback names nothing but this.
CREATE INDEX payments_provider_reference ON payments (provider_reference);
CREATE INDEX payments_attempt_reference ON payments (attempt_reference) WHERE attempt > 1;
CREATE UNIQUE INDEX payments_idempotency ON payments (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX payments_escalated ON payments (escalated_at) WHERE escalated_at IS NOT NULL;
CREATE INDEX payments_turned ON payments (turned_at) WHERE turned_at IS NOT NULL;

-- The attempts that a payment has left behind.
CREATE TABLE attempts (
  payment TEXT NOT NULL,
  number INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  rail TEXT NOT NULL,
  provider_reference TEXT NOT NULL,
  posts INTEGER NOT NULL,
  class TEXT NOT NULL,
  not_sent_by_socket INTEGER NOT NULL,
  reason TEXT NOT NULL,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (payment, number)
);
CREATE INDEX attempts_provider_reference ON attempts (provider_reference);

-- How many payments a tenant has, by kind, day (UTC days since 1970, of
-- created_at) and status; the sum over the shards, one a node and lane.
CREATE TABLE payment_counters (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  day INTEGER NOT NULL,
  status TEXT NOT NULL,
  shard INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, day, status, shard)
);

-- How far the daily second look at final payments has come.
CREATE TABLE payment_sweeps (
  name TEXT NOT NULL PRIMARY KEY,
  done_until INTEGER NOT NULL
);

-- Data packages that were quoted to a number.
CREATE TABLE offers (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  service_id TEXT NOT NULL,
  network TEXT NOT NULL,
  msisdn TEXT NOT NULL,
  rail TEXT NOT NULL,
  display TEXT NOT NULL,
  value TEXT NOT NULL,
  amount INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX offers_expires ON offers (expires_at);
