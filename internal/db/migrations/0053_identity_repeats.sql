-- owner: identity

-- What the audit log was told of the first use, for the entry that has the count of the repetitions. action is empty where none
-- is written.
ALTER TABLE person_uses ADD COLUMN action TEXT NOT NULL DEFAULT '';
ALTER TABLE person_uses ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE person_uses ADD COLUMN subject TEXT NOT NULL DEFAULT '';
