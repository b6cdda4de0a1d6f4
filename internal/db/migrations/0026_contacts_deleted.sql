-- owner: contacts
-- A group that was deleted is gone for its tenant at once; its contacts, and then its row, are removed in small sets.

ALTER TABLE contact_groups ADD COLUMN deleted_at INTEGER NOT NULL DEFAULT 0;

CREATE INDEX contact_groups_deleted ON contact_groups (deleted_at) WHERE deleted_at <> 0;
