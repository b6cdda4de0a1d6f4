-- owner: contacts
-- Whether the number's owner put it on the list by a text (STOP). A text (START) removes only such a number.
-- Expand first: nodes of the version before write rows without it.

ALTER TABLE opt_outs ADD COLUMN by_text INTEGER NOT NULL DEFAULT 0 CHECK (by_text IN (0, 1));
