-- owner: senderid
-- The class of a sender ID. Promotional texts have hours. Expand first: nodes of the version before write rows without it.

ALTER TABLE sender_ids ADD COLUMN class TEXT NOT NULL DEFAULT 'transactional' CHECK (class IN ('transactional', 'promotional'));
