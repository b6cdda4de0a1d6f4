-- owner: batch

-- The rows that still name a person, for their erasure.
CREATE INDEX batch_rows_person ON batch_rows (batch) WHERE account <> '';
