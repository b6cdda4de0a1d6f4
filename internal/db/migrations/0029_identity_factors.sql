-- owner: identity
-- What people prove themselves with: a password, a second factor, recovery codes. Passwords are stored as Argon2id
-- hashes, the keys of factors sealed by the master key, recovery codes as hashes.

ALTER TABLE people ADD COLUMN password TEXT NOT NULL DEFAULT '';

ALTER TABLE people ADD COLUMN reset_at INTEGER NOT NULL DEFAULT 0; -- when an operator last took password and factor away

ALTER TABLE sessions ADD COLUMN factor_at INTEGER NOT NULL DEFAULT 0; -- when the second factor was last given

ALTER TABLE sessions ADD COLUMN source TEXT NOT NULL DEFAULT ''; -- the network that it began from

ALTER TABLE sign_in_links ADD COLUMN kind TEXT NOT NULL DEFAULT 'development' CHECK (kind IN ('development', 'invitation'));

CREATE TABLE factors (
  person       TEXT    NOT NULL PRIMARY KEY,
  sealed       TEXT    NOT NULL DEFAULT '', -- empty: none yet
  confirmed_at INTEGER NOT NULL DEFAULT 0,
  last_step    INTEGER NOT NULL DEFAULT 0,  -- of the newest code that was taken
  pending      TEXT    NOT NULL DEFAULT '', -- shown, and not confirmed by a code yet
  pending_at   INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE recovery_codes (
  hash       TEXT    NOT NULL PRIMARY KEY,
  person     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX recovery_codes_of_person ON recovery_codes (person);

-- How far ahead the tries of an account or an address have been used: see Identity.try.
CREATE TABLE sign_in_tries (
  id         TEXT    NOT NULL PRIMARY KEY,
  used_until INTEGER NOT NULL
);

CREATE INDEX sign_in_tries_by_end ON sign_in_tries (used_until);
