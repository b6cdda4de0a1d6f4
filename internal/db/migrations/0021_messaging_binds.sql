-- owner: messaging
-- How each account with a message centre stands, as the node says every minute that holds the connections of its mode.

CREATE TABLE sms_binds (
  mode        TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  name        TEXT NOT NULL,
  connections INTEGER NOT NULL,
  bound       INTEGER NOT NULL CHECK (bound >= 0 AND bound <= connections),
  since       INTEGER NOT NULL, -- of the last change
  why         TEXT NOT NULL,    -- of the last failure, while some connection is not bound
  seen_at     INTEGER NOT NULL,
  PRIMARY KEY (mode, name)
);
