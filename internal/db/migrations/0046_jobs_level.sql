-- owner: jobs
-- How much of the shared protocol the node's program knows: what an older node would do wrong begins when none lives. A node of
-- the release before writes no level.
ALTER TABLE job_leases ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
