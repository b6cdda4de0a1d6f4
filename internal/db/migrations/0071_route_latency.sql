-- owner: route

-- How long providers took to answer, by hour in a fixed histogram: n exchanges of which failed had no answer or one of 500 and above.
-- Each is added in the transaction that writes its exchange. A node of the version before adds none.
CREATE TABLE provider_latency (
  at        INTEGER NOT NULL, -- beginning of the hour
  mode      TEXT    NOT NULL,
  provider  TEXT    NOT NULL,
  operation TEXT    NOT NULL, -- as in the exchanges
  bucket    INTEGER NOT NULL, -- index of the histogram, see latency.go
  n         INTEGER NOT NULL CHECK (n > 0),
  failed    INTEGER NOT NULL CHECK (failed BETWEEN 0 AND n),
  PRIMARY KEY (at, mode, provider, operation, bucket)
);
