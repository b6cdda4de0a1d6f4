-- owner: messaging
-- The texts of a chunk whose recipients have texts of their own: a JSON list in the order of the recipients, empty for one text. Such a
-- campaign has chunks whatever its size, so that its texts are deleted with the last message. Expand first: nodes of the version before
-- write rows without it, and do not know the kind of such a campaign's jobs.

ALTER TABLE chunks ADD COLUMN texts TEXT NOT NULL DEFAULT '';
