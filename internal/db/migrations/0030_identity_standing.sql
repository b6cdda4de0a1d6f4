-- owner: identity
-- When a role was last given or changed: who got one since an act was made does not check that act.

ALTER TABLE memberships ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;
