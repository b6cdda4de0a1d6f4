-- owner: payments
-- What a key with a daily limit has spent on the last day on which it spent. What comes back is not taken off.

CREATE TABLE key_spending (
  tenant     TEXT    NOT NULL,
  access_key TEXT    NOT NULL,
  day        INTEGER NOT NULL, -- since 1970, UTC
  spent      INTEGER NOT NULL CHECK (spent > 0),
  PRIMARY KEY (tenant, access_key)
);
