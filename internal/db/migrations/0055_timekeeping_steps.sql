-- owner: timekeeping
-- When the clock of a node was set, and when an operator accepted a clock as it is. by is 0 there.
CREATE TABLE clock_steps (
  id     TEXT    NOT NULL PRIMARY KEY,
  node   TEXT    NOT NULL, -- empty: an operator's
  at     INTEGER NOT NULL, -- by the clock as it was set
  by     INTEGER NOT NULL, -- microseconds; positive: forward
  actor  TEXT    NOT NULL,
  reason TEXT    NOT NULL
);
CREATE INDEX clock_steps_at ON clock_steps (at);
