-- owner: route
-- The log of exchanges, packed: the texts are alike from row to row and are most of it. Rows of earlier versions stay in
-- provider_exchanges, where nodes of the version before still write while they are replaced, until they are pruned.

CREATE TABLE exchanges (
  at      INTEGER NOT NULL,
  id      INTEGER NOT NULL, -- random: it tells apart what was said in one microsecond
  payment TEXT    NOT NULL, -- empty when it is about none
  packed  BLOB    NOT NULL, -- see exchange_packing.go
  CONSTRAINT exchanges_key PRIMARY KEY (at, id) -- by time, in which it is read and pruned
) STRICT, WITHOUT ROWID;

CREATE INDEX exchanges_by_payment ON exchanges (payment, at);
