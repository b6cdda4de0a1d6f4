-- owner: audit
-- The links of the chain are keyed. The row of audit_key is made at the changeover, in one transaction with the first keyed link.

ALTER TABLE audit_chain ADD COLUMN content TEXT NOT NULL DEFAULT ''; -- keyed hash of the entry alone; empty: a link without a key

CREATE TABLE audit_key (
  id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  sealed TEXT    NOT NULL -- under the master key: the chain's key, and number and hash of the last link without one
);

-- The last link, in a row of its own: it shows that the end of the chain was cut off.
CREATE TABLE audit_head (
  id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  number INTEGER NOT NULL CHECK (number > 0),
  hash   TEXT    NOT NULL,
  mac    TEXT    NOT NULL
);
