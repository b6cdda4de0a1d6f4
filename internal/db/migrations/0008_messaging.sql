-- owner: messaging
-- Sender IDs, contacts, campaigns and what became of each message, one-time passwords.

-- The folded name is what two requests of one tenant may not share while one of them stands.
CREATE TABLE sender_ids (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  name        TEXT NOT NULL CHECK (name <> ''),
  folded      TEXT NOT NULL CHECK (folded <> ''),
  description TEXT NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected')),
  reason      TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  reviewed_at INTEGER NOT NULL,
  reviewer    TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK ((status = 'pending') = (reviewed_at = 0))
);

CREATE UNIQUE INDEX sender_ids_standing ON sender_ids (tenant, folded) WHERE status <> 'rejected';
CREATE INDEX sender_ids_pending ON sender_ids (created_at) WHERE status = 'pending';

CREATE TABLE contact_groups (
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,
  name       TEXT NOT NULL CHECK (name <> ''),
  icon       TEXT NOT NULL,
  contacts   INTEGER NOT NULL CHECK (contacts >= 0),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
);

-- An id alone must find its owner: a foreign group is 403, an unknown one 404.
CREATE UNIQUE INDEX contact_groups_id ON contact_groups (id);

CREATE TABLE contacts (
  tenant     TEXT NOT NULL,
  group_id   TEXT NOT NULL,
  id         TEXT NOT NULL,
  msisdn     TEXT NOT NULL,
  first_name TEXT NOT NULL,
  last_name  TEXT NOT NULL,
  email      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, group_id, id)
);

CREATE UNIQUE INDEX contacts_number ON contacts (tenant, group_id, msisdn);
CREATE UNIQUE INDEX contacts_id ON contacts (id);

-- Numbers that are never sent a campaign of this tenant.
CREATE TABLE opt_outs (
  tenant     TEXT NOT NULL,
  msisdn     TEXT NOT NULL,
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, msisdn)
);
