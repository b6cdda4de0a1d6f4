-- owner: batch

-- Notices look every 20 seconds for batches that ended since their last look, and the erasure of names for those that ended long ago.
CREATE INDEX batches_ended ON batches (ended_at);
