-- owner: route

-- What a provider answered when it was last asked for a reference that nobody has, by operation.
CREATE TABLE provider_not_known (
  mode      TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  provider  TEXT    NOT NULL,
  operation TEXT    NOT NULL,
  state     TEXT    NOT NULL CHECK (state IN ('understood', 'not_understood', 'no_answer')),
  answer    TEXT    NOT NULL, -- HTTP status and code, as a setting would teach it; empty without an answer
  asked_at  INTEGER NOT NULL,
  PRIMARY KEY (mode, provider, operation)
);
