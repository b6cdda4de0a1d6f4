-- owner: ledger
-- What operators ordered, under references of theirs. A kind takes each reference once: the row is written by the
-- transaction that moves the amount.

CREATE TABLE bookings (
  kind      TEXT    NOT NULL CHECK (kind <> ''),
  reference TEXT    NOT NULL CHECK (reference <> ''),
  asset     TEXT    NOT NULL,
  account   TEXT    NOT NULL,
  amount    INTEGER NOT NULL CHECK (amount <> 0), -- into the account; out of it below zero
  at        INTEGER NOT NULL,
  act       TEXT    NOT NULL, -- id of its entry in the audit log
  PRIMARY KEY (kind, reference)
);

CREATE INDEX bookings_of_account ON bookings (account, kind, amount, at);
