-- owner: identity

-- The session that began the enrolment of the pending factor. Only this session confirms it.
ALTER TABLE factors ADD COLUMN pending_session TEXT NOT NULL DEFAULT '';
-- When the first factor was confirmed outside the first session of an invitation or of the bootstrap: personal tokens wait for an
-- hour after it. 0: they do not wait.
ALTER TABLE factors ADD COLUMN first_at INTEGER NOT NULL DEFAULT 0;
-- 1: the first session of an invitation or of the bootstrap.
ALTER TABLE sessions ADD COLUMN first INTEGER NOT NULL DEFAULT 0 CHECK (first IN (0, 1));
-- 1: the server's settings made the person, who has not signed in yet.
ALTER TABLE people ADD COLUMN bootstrap INTEGER NOT NULL DEFAULT 0 CHECK (bootstrap IN (0, 1));
