-- owner: checkup

-- The results of the last test of a provider's set-up.
CREATE TABLE provider_checks (
  mode     TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  provider TEXT    NOT NULL,
  number   INTEGER NOT NULL, -- place in the list
  subject  TEXT    NOT NULL,
  state    TEXT    NOT NULL CHECK (state IN ('ok', 'warn', 'fail')),
  fact     TEXT    NOT NULL,
  fix      TEXT    NOT NULL, -- empty when nothing is to be done
  at       INTEGER NOT NULL,
  PRIMARY KEY (mode, provider, number)
);
