-- owner: ledger
CREATE TABLE ledger_placeholder (id TEXT PRIMARY KEY);
