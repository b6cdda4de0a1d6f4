-- owner: compose

-- Campaigns that people write on a page. recipients is a JSON object of the names of fields and a row for each recipient; it is emptied
-- when the campaign is sent, or the draft is deleted.
CREATE TABLE text_drafts (
  tenant     TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  person     TEXT    NOT NULL, -- who made it
  status     TEXT    NOT NULL CHECK (status IN ('draft', 'requested', 'sent')),
  request    TEXT    NOT NULL, -- id of the change request; empty while it is a draft
  sender_id  TEXT    NOT NULL,
  message    TEXT    NOT NULL, -- with its fields
  starts_at  INTEGER NOT NULL CHECK (starts_at >= 0), -- 0: at once
  recipients TEXT    NOT NULL,
  count      INTEGER NOT NULL CHECK (count > 0),
  invalid    INTEGER NOT NULL CHECK (invalid >= 0),   -- not numbers
  repeated   INTEGER NOT NULL CHECK (repeated >= 0),  -- given more than once
  digest     TEXT    NOT NULL, -- of what is sent
  campaigns  TEXT    NOT NULL, -- ids, separated by commas; empty until it is sent
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX text_drafts_open ON text_drafts (created_at) WHERE status <> 'sent';
