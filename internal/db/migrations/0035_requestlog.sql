-- owner: requestlog
-- Requests of the JSON interface that were refused or failed, kept for 30 days so that they can be found by their id.

CREATE TABLE refused_requests (
  id         TEXT    NOT NULL, -- UUIDv7: newer ones are greater
  tenant     TEXT    NOT NULL, -- empty: the request had no valid key
  request_id TEXT    NOT NULL, -- a client may give its own, and may give it twice
  at         INTEGER NOT NULL,
  took       INTEGER NOT NULL, -- microseconds
  method     TEXT    NOT NULL,
  endpoint   TEXT    NOT NULL, -- as the table of routes has it, so never an id
  status     INTEGER NOT NULL CHECK (status BETWEEN 400 AND 599),
  code       TEXT    NOT NULL,
  message    TEXT    NOT NULL,
  fields     TEXT    NOT NULL, -- JSON: the fields that are wrong, and why
  api_key    TEXT    NOT NULL, -- id of the key
  origin     TEXT    NOT NULL, -- address
  CONSTRAINT refused_requests_key PRIMARY KEY (id)
);

CREATE INDEX refused_requests_of_tenant ON refused_requests (tenant, id);
CREATE INDEX refused_requests_by_request ON refused_requests (request_id);
CREATE INDEX refused_requests_by_age ON refused_requests (at);
