-- owner: identity
-- Links by which people who forgot their password choose a new one. Of a link its hash is kept, never the token.

CREATE TABLE password_links (
  hash       TEXT    NOT NULL PRIMARY KEY CHECK (length(hash) = 64),
  person     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL CHECK (expires_at > created_at),
  used_at    INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX password_links_of_person ON password_links (person);
CREATE INDEX password_links_by_end ON password_links (expires_at);
