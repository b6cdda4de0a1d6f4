-- owner: messaging
-- When a campaign begins, and whether its texts go out in the hours of promotional texts alone. Expand first: nodes of the version before
-- write rows without both. A job of such a campaign is due at its begin, on them too.

ALTER TABLE campaigns ADD COLUMN starts_at INTEGER NOT NULL DEFAULT 0 CHECK (starts_at >= 0);
ALTER TABLE campaigns ADD COLUMN promotional INTEGER NOT NULL DEFAULT 0 CHECK (promotional IN (0, 1));
