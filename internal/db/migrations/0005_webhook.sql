-- owner: webhook

-- Secrets are sealed under the installation's secret. The former one still
-- signs until former_until.
CREATE TABLE webhook_secrets (
    tenant       TEXT    NOT NULL PRIMARY KEY,
    secret       BLOB    NOT NULL,
    former       BLOB,
    former_until INTEGER NOT NULL,
    made_at      INTEGER NOT NULL
) WITHOUT ROWID;

-- One row an event. Its place is beside the other events of its subject, which
-- is what a newer one looks for; subjects grow with time, so that the order of
-- the key is that of a tenant's history.
CREATE TABLE webhook_events (
    tenant     TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    mode       TEXT    NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind IN ('payout', 'collection', 'airtime')),
    url        TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'failed', 'superseded')),
    attempts   INTEGER NOT NULL,
    status     INTEGER NOT NULL, -- HTTP status of the last attempt; 0: no answer
    took       INTEGER NOT NULL, -- of the last attempt, in microseconds
    error      TEXT    NOT NULL, -- of the last attempt
    created_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    failed_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, subject, id),
    CHECK ((state = 'pending') = (ended_at = 0)),
    CHECK ((state = 'failed') = (failed_at > 0))
) WITHOUT ROWID;
-- A delivery changes no indexed column: with room on the page it touches no index.
-- postgres: ALTER TABLE webhook_events SET (fillfactor = 70);

CREATE INDEX webhook_events_failed ON webhook_events (failed_at) WHERE failed_at > 0;

-- Attempts that were not answered with 2xx.
CREATE TABLE webhook_attempts (
    tenant TEXT    NOT NULL,
    event  TEXT    NOT NULL,
    id     TEXT    NOT NULL,
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    status INTEGER NOT NULL,
    took   INTEGER NOT NULL,
    error  TEXT    NOT NULL,
    answer TEXT    NOT NULL, -- the first 4 KB
    PRIMARY KEY (tenant, event, id)
) WITHOUT ROWID;
