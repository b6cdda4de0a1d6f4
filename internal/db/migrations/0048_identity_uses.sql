-- owner: identity
-- What each person did within the last hour of the things that are limited for each person. key is the thing, or a keyed hash of
-- it; used counts how often.
CREATE TABLE person_uses (
  person TEXT    NOT NULL,
  what   TEXT    NOT NULL,
  key    TEXT    NOT NULL,
  at     INTEGER NOT NULL, -- of the first use
  used   INTEGER NOT NULL CHECK (used > 0),
  PRIMARY KEY (person, what, key)
);
CREATE INDEX person_uses_at ON person_uses (at);
