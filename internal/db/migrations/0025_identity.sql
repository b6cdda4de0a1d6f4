-- owner: identity
-- People who use the console, the role that each has at a tenant or at the installation, the links by which they
-- sign in and their sessions. Of links and sessions the hash of the token is kept, never the token.

CREATE TABLE people (
  id          TEXT    NOT NULL PRIMARY KEY,
  email       TEXT    NOT NULL UNIQUE CHECK (length(email) BETWEEN 3 AND 254),
  name        TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  created_at  INTEGER NOT NULL,
  disabled_at INTEGER NOT NULL DEFAULT 0
);

-- The tenant '' is the installation.
CREATE TABLE memberships (
  tenant     TEXT    NOT NULL,
  person     TEXT    NOT NULL,
  role       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, person)
);

CREATE INDEX memberships_of_person ON memberships (person, tenant);

CREATE TABLE sign_in_links (
  hash       TEXT    NOT NULL PRIMARY KEY,
  person     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);

CREATE TABLE sessions (
  hash       TEXT    NOT NULL PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  person     TEXT    NOT NULL,
  agent      TEXT    NOT NULL, -- the browser, in its own words
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX sessions_of_person ON sessions (person, id);

CREATE INDEX sessions_by_start ON sessions (created_at);
