-- owner: batch

-- name_rail is the rail that returned the registered name of a bank account; empty: none did. Only that rail, or one that returns the
-- same name, pays the row.
ALTER TABLE batch_rows ADD COLUMN name_rail TEXT NOT NULL DEFAULT '';
