-- owner: route
-- The log of exchanges is found by payment, whose ids grow with time. It was found by ProviderReference, which is as
-- good as random: nearly every row that was added changed a page of that index that no other row had changed.

ALTER TABLE provider_exchanges RENAME TO exchanges_by_reference;

CREATE TABLE provider_exchanges (
  id        TEXT    NOT NULL,
  payment   TEXT    NOT NULL, -- empty when it is about none
  reference TEXT    NOT NULL, -- ProviderReference without hyphens; empty when it is about no payment
  at        INTEGER NOT NULL,
  took      INTEGER NOT NULL,
  provider  TEXT    NOT NULL,
  mode      TEXT    NOT NULL,
  operation TEXT    NOT NULL,
  method    TEXT    NOT NULL,
  url       TEXT    NOT NULL,
  status    INTEGER NOT NULL, -- 0: no answer
  request   TEXT    NOT NULL,
  answer    TEXT    NOT NULL,
  written   INTEGER NOT NULL CHECK (written IN (0, 1)),
  error     TEXT    NOT NULL,
  CONSTRAINT provider_exchanges_key PRIMARY KEY (at, id) -- by time, in which it is read and pruned
);

INSERT INTO provider_exchanges (id, payment, reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error)
  SELECT id, COALESCE(
    (SELECT payments.id FROM payments WHERE payments.provider_reference = hyphenated),
    (SELECT attempts.payment FROM attempts WHERE attempts.provider_reference = hyphenated),
    (SELECT payments.id FROM payments WHERE payments.attempt > 1 AND payments.attempt_reference = hyphenated), ''),
    reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error
  FROM (SELECT exchanges_by_reference.*, substr(reference, 1, 8) || '-' || substr(reference, 9, 4) || '-' || substr(reference, 13, 4)
    || '-' || substr(reference, 17, 4) || '-' || substr(reference, 21) AS hyphenated FROM exchanges_by_reference) AS logged;

DROP TABLE exchanges_by_reference;

CREATE INDEX provider_exchanges_by_payment ON provider_exchanges (payment, at);
