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

-- credits and segments are of one recipient; recipients are those that are charged. The counts at the
-- end follow the messages, in the same transactions. A campaign of at most 10 recipients is a chunk by
-- itself, without a row there: numbers are its recipients, turn and marked_at are those of its delivery (see
-- chunks); of any other they are empty and 0. A small one never becomes done here: it is when every recipient
-- has a message row that waits for nobody, and so it is read.
CREATE TABLE campaigns (
  tenant           TEXT NOT NULL,
  id               TEXT NOT NULL,
  mode             TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  kind             TEXT NOT NULL CHECK (kind IN ('campaign', 'otp')),
  sender_id        TEXT NOT NULL,
  sender           TEXT NOT NULL,
  message          TEXT NOT NULL,
  encoding         TEXT NOT NULL,
  segments         INTEGER NOT NULL CHECK (segments > 0),
  credits          INTEGER NOT NULL CHECK (credits > 0),
  recipients       INTEGER NOT NULL CHECK (recipients > 0),
  invalid          INTEGER NOT NULL CHECK (invalid >= 0),
  excluded         INTEGER NOT NULL CHECK (excluded >= 0),
  status           TEXT NOT NULL CHECK (status IN ('active', 'stopped', 'done')),
  access_key       TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  idempotency_hash TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  numbers          TEXT NOT NULL,
  turn             INTEGER NOT NULL,
  marked_at        INTEGER NOT NULL,
  left_over        INTEGER NOT NULL CHECK (left_over >= 0), -- chunks that are not done; those that have a row
  refunded         INTEGER NOT NULL CHECK (refunded >= 0 AND refunded <= recipients), -- messages given back
  PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX campaigns_idempotency ON campaigns (tenant, idempotency_key) WHERE idempotency_key <> '';

-- A chunk is at most 1,000 recipients, separated by commas; no counts from 0. Chunks of a large campaign are
-- staged before the campaign has a row; one whose campaign never came is swept. A chunk that is over has no
-- row. turn changes with every step of its delivery: who does not know the last one is not the owner any
-- more. 0: nobody has begun. The first so many as begun are marked: they may have left, and have a message row
-- as soon as it is known what became of that. marked_at is when the oldest of those without a row was marked.
CREATE TABLE chunks (
  tenant     TEXT NOT NULL,
  campaign   TEXT NOT NULL,
  no         INTEGER NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('staged', 'ready')),
  turn       INTEGER NOT NULL,
  begun      INTEGER NOT NULL,
  marked_at  INTEGER NOT NULL,
  size       INTEGER NOT NULL CHECK (size >= begun),
  recipients TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, campaign, no)
);

CREATE INDEX chunks_staged ON chunks (created_at) WHERE state = 'staged';

-- Born when it is known what became of its submit; before, it is a place in its chunk. no is its place in the
-- campaign, from 0. An invalid recipient has a row from the beginning, with a negative no. sending is one that
-- was queued and is offered again. Of a text of one segment the row is that of its part, too (see parts):
-- upstream_id is the operator's id, empty of any other, and open 1 until its receipt. Rows change state: no
-- index on that.
CREATE TABLE messages (
  tenant       TEXT NOT NULL,
  campaign     TEXT NOT NULL,
  no           INTEGER NOT NULL,
  recipient    TEXT NOT NULL,
  status       TEXT NOT NULL CHECK (status IN ('queued', 'sending', 'submitted', 'delivered', 'failed', 'expired', 'rejected', 'unknown', 'invalid')),
  accepted     INTEGER NOT NULL CHECK (accepted >= 0), -- segments that an operator took
  open         INTEGER NOT NULL CHECK (open >= 0),     -- parts without a final receipt
  submitted_at INTEGER NOT NULL,                       -- before the submit: when it was marked first; 0: not yet
  delivered_at INTEGER NOT NULL,
  error        TEXT NOT NULL,
  upstream_id  TEXT NOT NULL,
  PRIMARY KEY (tenant, campaign, no)
) WITHOUT ROWID;

-- Of all, because the plan that is made for a young table reads the whole of a smaller one.
CREATE INDEX messages_upstream ON messages (upstream_id);

-- The messages that are unknown: written, and never answered. since is when they were born.
CREATE TABLE unsure (
  tenant    TEXT NOT NULL,
  campaign  TEXT NOT NULL,
  message   INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  since     INTEGER NOT NULL,
  PRIMARY KEY (tenant, campaign, message)
);

CREATE INDEX unsure_since ON unsure (since);
CREATE INDEX unsure_recipient ON unsure (recipient, since);

-- One row a segment that an operator took of a text of several, found by the operator's id; ids come round
-- again. Of a message of which one segment was taken and another was not, the other has a row, too, with an
-- empty id. submitted_at is before the submit, so that no receipt of it is older.
CREATE TABLE parts (
  upstream_id  TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  campaign     TEXT NOT NULL,
  message      INTEGER NOT NULL,
  part         INTEGER NOT NULL,
  recipient    TEXT NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('open', 'delivered', 'failed', 'expired', 'rejected', 'unknown')),
  submitted_at INTEGER NOT NULL,
  PRIMARY KEY (upstream_id, tenant, campaign, message, part)
) WITHOUT ROWID;

CREATE INDEX parts_of_message ON parts (tenant, campaign, message);

-- Receipts that came before the answer to their submit was stored, or for nobody.
CREATE TABLE early_receipts (
  upstream_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  recipient   TEXT NOT NULL,
  state       TEXT NOT NULL,
  code        TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (upstream_id, id)
);

CREATE INDEX early_receipts_received ON early_receipts (received_at);
CREATE INDEX early_receipts_recipient ON early_receipts (recipient, received_at);

-- The code itself is nowhere, only its keyed hash; the node that sends it derives it from the id under a
-- key that is not in the database. tries are taken before a code is compared.
CREATE TABLE otps (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  msisdn      TEXT NOT NULL,
  prefix      TEXT NOT NULL,
  hash        TEXT NOT NULL,
  length      INTEGER NOT NULL CHECK (length BETWEEN 4 AND 10),
  status      TEXT NOT NULL CHECK (status IN ('open', 'used', 'void')),
  tries       INTEGER NOT NULL CHECK (tries >= 0 AND tries <= 5),
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX otps_open ON otps (tenant, msisdn) WHERE status = 'open';
CREATE INDEX otps_expired ON otps (expires_at);

-- How often a number was sent a code, or failed to tell one, in the window that began then.
CREATE TABLE otp_counters (
  tenant       TEXT NOT NULL,
  msisdn       TEXT NOT NULL,
  name         TEXT NOT NULL CHECK (name IN ('sent', 'failed')),
  window_start INTEGER NOT NULL,
  used         INTEGER NOT NULL CHECK (used >= 0),
  PRIMARY KEY (tenant, msisdn, name)
);

CREATE INDEX otp_counters_window ON otp_counters (window_start);

-- Room beside each row that changes for its next version, so that no index grows.
-- postgres: ALTER TABLE campaigns SET (fillfactor = 70);
-- postgres: ALTER TABLE chunks SET (fillfactor = 50);
-- postgres: ALTER TABLE messages SET (fillfactor = 60);
-- postgres: ALTER TABLE parts SET (fillfactor = 80);
