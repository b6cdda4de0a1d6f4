-- owner: ledger

-- Accounts with a floor, one row each: the row that a payout locks. sequence
-- counts the transfers of the account, at is the time of the last one.
CREATE TABLE wallets (
	id TEXT NOT NULL PRIMARY KEY,
	asset TEXT NOT NULL,
	floor INTEGER NOT NULL,
	balance INTEGER NOT NULL,
	sequence INTEGER NOT NULL CHECK (sequence >= 0),
	at INTEGER NOT NULL,
	CHECK (balance >= floor)
) STRICT;

-- Every other account is the sum of its shards. Nobody locks them: they are
-- updated relatively, and lanes that commit at once use different ones.
CREATE TABLE shards (
	id TEXT NOT NULL,
	asset TEXT NOT NULL,
	shard INTEGER NOT NULL,
	balance INTEGER NOT NULL,
	PRIMARY KEY (id, asset, shard)
) STRICT;

-- Never changed, never deleted. A transfer of a wallet carries its number in
-- the wallet and the balance after it.
CREATE TABLE transfers (
	amount INTEGER NOT NULL CHECK (amount > 0),
	at INTEGER NOT NULL,
	sequence INTEGER CHECK (sequence > 0),
	balance INTEGER,
	subject TEXT NOT NULL,
	leg TEXT NOT NULL,
	asset TEXT NOT NULL,
	kind TEXT NOT NULL,
	from_account TEXT NOT NULL,
	to_account TEXT NOT NULL,
	wallet TEXT,
	PRIMARY KEY (subject, leg),
	CHECK (from_account <> to_account),
	CHECK ((wallet IS NULL) = (sequence IS NULL) AND (wallet IS NULL) = (balance IS NULL)),
	CHECK (wallet IS NULL OR wallet = from_account OR wallet = to_account)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX transfers_of_wallet ON transfers (wallet, sequence) WHERE wallet IS NOT NULL;

-- Room beside each hot row for its next version, so that no index grows.
-- postgres: ALTER TABLE wallets SET (fillfactor = 50);
-- postgres: ALTER TABLE shards SET (fillfactor = 50);
