-- owner: messaging
-- How many of a tenant's one-time passwords to a range of numbers were told back, counted in batches: the batch that is being filled, and
-- the full one, whose codes are given time to be told. A range whose batch had too few is closed for a while.

CREATE TABLE otp_taps (
  tenant        TEXT NOT NULL,
  prefix        TEXT NOT NULL,    -- first digits of the numbers, in the 233 form
  batch         INTEGER NOT NULL, -- number of the batch that is being filled
  began         INTEGER NOT NULL,
  sent          INTEGER NOT NULL CHECK (sent >= 0),
  verified      INTEGER NOT NULL CHECK (verified >= 0),
  full_batch    INTEGER NOT NULL, -- number of the last batch that was filled; 0: none
  full_at       INTEGER NOT NULL, -- when it was filled; 0: it is judged
  full_sent     INTEGER NOT NULL,
  full_verified INTEGER NOT NULL,
  closed_at     INTEGER NOT NULL, -- 0: never
  closed_until  INTEGER NOT NULL,
  PRIMARY KEY (tenant, prefix)
);

CREATE INDEX otp_taps_closed ON otp_taps (closed_until);

-- The batch in which a code was counted; 0: in none.
ALTER TABLE otps ADD COLUMN tap_batch INTEGER NOT NULL DEFAULT 0;
