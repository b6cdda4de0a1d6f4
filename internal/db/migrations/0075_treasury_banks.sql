-- owner: treasury

-- The bank accounts of the company. The money of one is in the account bank/<name> of the ledger, as a negative balance. A bank account is
-- never deleted. opening is the amount of its one opening entry, in pesewas.
--
-- Expand first: a node of the release before reads none of these tables, and no balance changes.
CREATE TABLE bank_accounts (
  name TEXT NOT NULL PRIMARY KEY CHECK (name <> ''),
  mode TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  bank TEXT NOT NULL CHECK (bank <> ''),
  number TEXT NOT NULL CHECK (number <> ''),
  currency TEXT NOT NULL CHECK (currency = 'GHS'),
  state TEXT NOT NULL CHECK (state IN ('open', 'closed')),
  added_at INTEGER NOT NULL,
  closed_at INTEGER NOT NULL DEFAULT 0,
  opening INTEGER,
  CHECK ((closed_at <> 0) = (state = 'closed'))
) STRICT;
CREATE UNIQUE INDEX bank_accounts_number ON bank_accounts (mode, bank, number);

-- Deposits that were seen at the bank. A slip of a bank account pays for one deposit. slip is its number without spaces, punctuation and
-- leading zeros, in capitals; given is the number as it was typed.
CREATE TABLE bank_slips (
  bank TEXT NOT NULL,
  slip TEXT NOT NULL CHECK (slip <> ''),
  given TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  act TEXT NOT NULL, -- the change request
  at INTEGER NOT NULL,
  PRIMARY KEY (bank, slip)
) STRICT;

-- Our own money on its way between a bank account and a float. source and target are accounts of the ledger. The amounts of those that are
-- sent and have not ended are the money in transit.
CREATE TABLE own_transfers (
  id TEXT NOT NULL PRIMARY KEY, -- that of the change request that sent it
  asset TEXT NOT NULL,
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  fee INTEGER NOT NULL DEFAULT 0 CHECK (fee >= 0 AND fee < amount), -- charged on the way
  state TEXT NOT NULL CHECK (state IN ('sent', 'arrived', 'returned')),
  reference TEXT NOT NULL,
  sent_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL DEFAULT 0,
  CHECK (source <> target),
  CHECK ((ended_at = 0) = (state = 'sent')),
  CHECK (fee = 0 OR state <> 'sent')
) STRICT;
CREATE INDEX own_transfers_open ON own_transfers (sent_at) WHERE state = 'sent';
