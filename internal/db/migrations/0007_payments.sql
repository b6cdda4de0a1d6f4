-- owner: payments

-- One row a payment. The current attempt lives on the row: an ordinary payment
-- writes it at acceptance and at settlement and never in between. seq numbers
-- the payments of one tenant and kind 1, 2, 3, ... without a gap, and created_at
-- never runs backwards along it: the histories are in its order. No index holds
-- what a settlement changes.
CREATE TABLE payments (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('collection', 'payout', 'topup', 'bundle')),
  id TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (seq > 0),
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
  rail TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  settled_at INTEGER NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  refused INTEGER NOT NULL DEFAULT 0,
  note TEXT NOT NULL DEFAULT '',
  upstream_id TEXT NOT NULL DEFAULT '',
  -- The current attempt. Of its posts at most (posts - unsent) were written;
  -- sending_at is set before a POST that the rail cannot be given twice.
  attempt INTEGER NOT NULL DEFAULT 1 CHECK (attempt > 0),
  attempt_reference TEXT NOT NULL DEFAULT '',
  posts INTEGER NOT NULL DEFAULT 1 CHECK (posts > 0),
  unsent INTEGER NOT NULL DEFAULT 0 CHECK (unsent BETWEEN 0 AND posts),
  sending_at INTEGER NOT NULL DEFAULT 0,
  class TEXT NOT NULL DEFAULT '',
  escalated_at INTEGER,
  turned_at INTEGER,
  PRIMARY KEY (tenant, kind, seq),
  CHECK ((settled_at = 0) = (status IN ('waiting', 'pending'))),
  CHECK (status NOT IN ('declined', 'invalid') OR kind = 'collection'),
  CHECK (status <> 'waiting' OR (kind = 'topup' AND parent <> ''))
);
-- A settlement changes no indexed column: with room on the page it touches no index.
-- postgres: ALTER TABLE payments SET (fillfactor = 60);
-- The hot statements find rows by an id or a reference of ours and say nothing
-- else that an index begins with: while a table has no statistics yet, PostgreSQL
-- takes any index whose first columns fit, and reads a tenant's whole list for
-- one row.
CREATE UNIQUE INDEX payments_id ON payments (id);
CREATE UNIQUE INDEX payments_reference ON payments (tenant, kind, reference);
-- A callback names nothing but this.
CREATE INDEX payments_provider_reference ON payments (provider_reference);
CREATE INDEX payments_attempt_reference ON payments (attempt_reference) WHERE attempt > 1;
CREATE UNIQUE INDEX payments_idempotency ON payments (idempotency_key, tenant) WHERE idempotency_key IS NOT NULL;
CREATE INDEX payments_escalated ON payments (escalated_at) WHERE escalated_at IS NOT NULL;
CREATE INDEX payments_turned ON payments (turned_at) WHERE turned_at IS NOT NULL;

-- The attempts that a payment has left behind for another rail.
CREATE TABLE attempts (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  payment TEXT NOT NULL,
  number INTEGER NOT NULL,
  rail TEXT NOT NULL,
  provider_reference TEXT NOT NULL,
  posts INTEGER NOT NULL,
  class TEXT NOT NULL,
  reason TEXT NOT NULL,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, payment, number)
);
CREATE INDEX attempts_provider_reference ON attempts (provider_reference);

-- The newest end of each tenant's list of one kind: how many payments it has,
-- which is the last seq, and when the last was made.
CREATE TABLE payment_ends (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  total INTEGER NOT NULL CHECK (total >= 0),
  last_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind)
);

-- The first seq of each day (UTC days since 1970) that has any.
CREATE TABLE payment_days (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  day INTEGER NOT NULL,
  first INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, day)
);

-- Which payments have a final status, in blocks of a list; the sum over the
-- shards, one a lane. level 0 has blocks of 60, whose n has a bit for each payment
-- with the status; levels 1 and 2 have blocks of 1440 and 34560, whose n is their
-- number. What is open is nowhere: it is the rest.
CREATE TABLE payment_counters (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  level INTEGER NOT NULL,
  block INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, status, level, block, shard)
);

-- How far the daily second look at final payments has come: the last seq of each
-- list, by tenant/kind.
CREATE TABLE payment_sweeps (
  name TEXT NOT NULL PRIMARY KEY,
  done_until INTEGER NOT NULL
);

-- The second looks that have a time of their own: at payments that became final
-- when the sweep had passed them, and at those that could not be asked about.
CREATE TABLE payment_looks (
  due_at INTEGER NOT NULL,
  payment TEXT NOT NULL,
  PRIMARY KEY (due_at, payment)
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
