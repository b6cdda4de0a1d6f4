-- owner: batch

-- Rows with a reference of their own, for the warning about a reference in two open batches.
CREATE INDEX batch_rows_reference ON batch_rows (tenant, reference) WHERE reference <> '';
