-- owner: changes
-- What the requester of a change saw besides its sentence, as canonical JSON. Empty: nothing, or a request of the version before.
-- Expand first: nodes of the version before write rows without it.

ALTER TABLE acts ADD COLUMN facts TEXT NOT NULL DEFAULT '';
