-- owner: access
-- Whether a server in production mode was ever started on this database: commands, which open it without the server's
-- settings, then want to know who gives them. It is never taken back.

ALTER TABLE installation ADD COLUMN production INTEGER NOT NULL DEFAULT 0 CHECK (production IN (0, 1));
