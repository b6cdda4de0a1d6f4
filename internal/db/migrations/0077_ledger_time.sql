-- owner: ledger
-- Days, months and the journal read transfers in the order of time. New rows are at the end of the index. A node of the release before
-- writes it without knowing.
CREATE INDEX transfers_at ON transfers (at);
