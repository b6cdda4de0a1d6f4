-- owner: batch

-- A batch is a file of payouts that are sent together. The money of a batch that runs is in the account reserve/<tenant> of the
-- ledger: rest is what it still holds for this batch. next is the first row that is neither accepted nor refused: rows are
-- accepted in their order, and whoever accepts some holds the lock of this row.
CREATE TABLE batches (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  name TEXT NOT NULL CHECK (name <> ''),
  code TEXT NOT NULL CHECK (code <> ''),
  repetition INTEGER NOT NULL CHECK (repetition >= 0),
  again TEXT NOT NULL,        -- why it repeats rows of an earlier batch; empty: it does not
  maker TEXT NOT NULL,
  access_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('draft', 'requested', 'running', 'paused', 'finished', 'cancelled', 'void')),
  cause TEXT NOT NULL DEFAULT '', -- of a pause
  notes TEXT NOT NULL DEFAULT '', -- what is unusual about the file, a sentence a line
  digest TEXT NOT NULL DEFAULT '', -- over blocks; empty: the rows are not frozen
  blocks TEXT NOT NULL DEFAULT '', -- digests of 1,000 rows each
  version INTEGER NOT NULL DEFAULT 1, -- grows with each change of its rows
  lines INTEGER NOT NULL CHECK (lines > 0),
  plan INTEGER NOT NULL DEFAULT 0, -- version of the fee plan that made the charges, as frozen
  ready INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0), -- rows that are frozen to be paid
  amount INTEGER NOT NULL DEFAULT 0 CHECK (amount >= 0),
  charges INTEGER NOT NULL DEFAULT 0 CHECK (charges >= 0),
  overlap INTEGER NOT NULL DEFAULT 0 CHECK (overlap >= 0), -- rows that earlier batches paid, as frozen
  accepted INTEGER NOT NULL DEFAULT 0 CHECK (accepted >= 0),
  rest INTEGER NOT NULL DEFAULT 0 CHECK (rest >= 0),
  next INTEGER NOT NULL DEFAULT 1 CHECK (next > 0),
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  requested_at INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL DEFAULT 0,
  paused_at INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER NOT NULL DEFAULT 0,
  CHECK ((cause <> '') = (status = 'paused')),
  CHECK ((paused_at <> 0) = (status = 'paused')),
  CHECK (rest = 0 OR status IN ('running', 'paused')),
  CHECK (digest <> '' AND requested_at <> 0 OR status IN ('draft', 'void')),
  CHECK (digest = '' AND requested_at = 0 OR status <> 'draft'),
  CHECK ((started_at <> 0) = (status IN ('running', 'paused', 'finished', 'cancelled'))),
  CHECK ((ended_at <> 0) = (status IN ('finished', 'cancelled', 'void'))),
  CHECK (accepted = 0 OR started_at <> 0)
);
-- The same file has the same code, and is sent once. A batch of which nothing was accepted leaves its code.
CREATE UNIQUE INDEX batches_code ON batches (tenant, code) WHERE status IN ('draft', 'requested', 'running', 'paused', 'finished') OR accepted > 0;
CREATE INDEX batches_tenant ON batches (tenant, created_at);
CREATE INDEX batches_status ON batches (status) WHERE status IN ('draft', 'requested', 'running', 'paused');

CREATE TABLE batch_rows (
  batch TEXT NOT NULL,
  line INTEGER NOT NULL CHECK (line > 0), -- 1, 2, 3, ... in the order of the file
  source INTEGER NOT NULL,                -- its line in the file
  tenant TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('bad', 'ready', 'dropped', 'accepted', 'refused')),
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  account_name TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount >= 0),
  charges INTEGER NOT NULL DEFAULT 0 CHECK (charges >= 0),
  reference TEXT NOT NULL, -- the row's own, or empty
  note TEXT NOT NULL,
  given TEXT NOT NULL,     -- the cells as they were given, JSON
  problems TEXT NOT NULL,  -- of a bad row, JSON
  payment TEXT,
  reason TEXT NOT NULL DEFAULT '', -- of a refused row
  PRIMARY KEY (batch, line),
  CHECK ((state = 'bad') = (problems <> '')),
  CHECK (state IN ('bad', 'dropped') OR amount > 0),
  CHECK ((state = 'accepted') = (payment IS NOT NULL)),
  CHECK ((state = 'refused') = (reason <> ''))
);
CREATE UNIQUE INDEX batch_rows_payment ON batch_rows (payment) WHERE payment IS NOT NULL;
-- What was paid to an account before.
CREATE INDEX batch_rows_account ON batch_rows (tenant, account, amount) WHERE state IN ('ready', 'accepted');
