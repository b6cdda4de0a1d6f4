-- owner: identity
-- Personal tokens, by which commands name the person that gives them. Of a token its hash is kept, never the token.

CREATE TABLE personal_tokens (
  hash       TEXT    NOT NULL PRIMARY KEY CHECK (length(hash) = 64),
  id         TEXT    NOT NULL UNIQUE,
  person     TEXT    NOT NULL,
  name       TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 60), -- where it is used, in its person's words
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL CHECK (expires_at > created_at),
  ended_at   INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX personal_tokens_of_person ON personal_tokens (person, id);

CREATE INDEX personal_tokens_by_end ON personal_tokens (expires_at);
