-- owner: route

-- How many callbacks of a provider were true and how many were refused, with the time of the last of each.
CREATE TABLE provider_callbacks (
  mode        TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  provider    TEXT    NOT NULL,
  verified    INTEGER NOT NULL CHECK (verified >= 0),
  verified_at INTEGER NOT NULL, -- microseconds; 0: none
  refused     INTEGER NOT NULL CHECK (refused >= 0),
  refused_at  INTEGER NOT NULL,
  PRIMARY KEY (mode, provider)
);
