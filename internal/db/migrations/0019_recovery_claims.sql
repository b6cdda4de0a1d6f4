-- owner: recovery
-- What operators say that a provider has done in the time that was lost, and that nobody sends again.
CREATE TABLE recovery_claims (
  tenant    TEXT    NOT NULL,
  kind      TEXT    NOT NULL CHECK (kind IN ('collection', 'payout', 'topup')),
  reference TEXT    NOT NULL,
  amount    INTEGER NOT NULL CHECK (amount > 0),
  channel   TEXT    NOT NULL,
  party     TEXT    NOT NULL,
  bank      TEXT    NOT NULL,
  state     TEXT    NOT NULL CHECK (state IN ('waiting', 'adopted', 'refused')),
  why       TEXT    NOT NULL,
  actor     TEXT    NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, reference)
);
CREATE INDEX recovery_claims_waiting ON recovery_claims (at) WHERE state = 'waiting';
