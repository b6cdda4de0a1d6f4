-- owner: jobs

-- One row for each epoch of a node. An owner is "node/epoch". Once expires_at
-- is 0 the owner is dead and can never come back: it takes a new epoch.
CREATE TABLE job_leases (
    owner      TEXT    NOT NULL PRIMARY KEY,
    node       TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL -- by the database's clock; 0: dead
) WITHOUT ROWID;

-- A row is a job that is not finished. owner is '' when nobody has it yet, '?'
-- and a kind when it waits for a node that takes this kind, and 'dead' for a
-- dead letter.
CREATE TABLE jobs (
    id         TEXT    NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind <> ''),
    subject    TEXT    NOT NULL,
    payload    TEXT    NOT NULL,
    run_at     INTEGER NOT NULL,
    tries      INTEGER NOT NULL CHECK (tries >= 0),
    adopted    INTEGER NOT NULL CHECK (adopted IN (0, 1)), -- 1: had another owner
    last_error TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    dead_at    INTEGER NOT NULL,
    CHECK ((owner = 'dead') = (dead_at > 0))
) WITHOUT ROWID;

CREATE INDEX jobs_owner ON jobs (owner, run_at);

-- What exactly one node may do at a time.
CREATE TABLE job_holds (
    name  TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL -- '' when released
) WITHOUT ROWID;

-- Hints for the jobs of other nodes; seconds old at most.
CREATE TABLE job_wakes (
    subject TEXT    NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL -- by the database's clock
) WITHOUT ROWID;
