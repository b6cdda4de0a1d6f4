-- owner: messaging
-- The key of parts begins with the message, whose parts are one range of it on both engines. It began with the
-- operator's id, and a plan that PostgreSQL made while the table had a row or two found the parts of a message by
-- reading all of that key later.

ALTER TABLE parts RENAME TO parts_by_upstream;

CREATE TABLE parts (
  tenant       TEXT NOT NULL,
  campaign     TEXT NOT NULL,
  message      INTEGER NOT NULL,
  part         INTEGER NOT NULL,
  upstream_id  TEXT NOT NULL,
  recipient    TEXT NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('open', 'delivered', 'failed', 'expired', 'rejected', 'unknown')),
  submitted_at INTEGER NOT NULL,
  CONSTRAINT parts_key PRIMARY KEY (tenant, campaign, message, part)
) WITHOUT ROWID;

-- postgres: ALTER TABLE parts SET (fillfactor = 80);

INSERT INTO parts (tenant, campaign, message, part, upstream_id, recipient, state, submitted_at)
  SELECT tenant, campaign, message, part, upstream_id, recipient, state, submitted_at FROM parts_by_upstream;

DROP TABLE parts_by_upstream;

-- For receipts; ids come round again.
CREATE INDEX parts_upstream ON parts (upstream_id);
