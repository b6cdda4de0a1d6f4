-- owner: figures

-- Counts and amounts of payments by the hour and by the day of their acceptance. tenant is empty in the sums over all accounts. Nodes of
-- the version before neither read nor write these tables: what they accept and settle is counted by the next pass of a node that does.
CREATE TABLE figures_hours (
  tenant  TEXT    NOT NULL,
  at      INTEGER NOT NULL, -- beginning of the hour
  mode    TEXT    NOT NULL,
  kind    TEXT    NOT NULL,
  status  TEXT    NOT NULL,
  rail    TEXT    NOT NULL,
  n       INTEGER NOT NULL CHECK (n >= 0),
  amount  INTEGER NOT NULL CHECK (amount >= 0),
  charges INTEGER NOT NULL CHECK (charges >= 0),
  PRIMARY KEY (tenant, at, mode, kind, status, rail)
);
CREATE INDEX figures_hours_at ON figures_hours (at);

CREATE TABLE figures_days (
  tenant  TEXT    NOT NULL,
  at      INTEGER NOT NULL, -- beginning of the day
  mode    TEXT    NOT NULL,
  kind    TEXT    NOT NULL,
  status  TEXT    NOT NULL,
  rail    TEXT    NOT NULL,
  n       INTEGER NOT NULL CHECK (n >= 0),
  amount  INTEGER NOT NULL CHECK (amount >= 0),
  charges INTEGER NOT NULL CHECK (charges >= 0),
  PRIMARY KEY (tenant, at, mode, kind, status, rail)
);

-- The last payment of each list that the figures count.
CREATE TABLE figures_lists (
  tenant TEXT    NOT NULL,
  kind   TEXT    NOT NULL,
  seq    INTEGER NOT NULL CHECK (seq > 0),
  PRIMARY KEY (tenant, kind)
);

-- The counted payments that had no final status, as they were counted.
CREATE TABLE figures_open (
  tenant     TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  mode       TEXT    NOT NULL,
  status     TEXT    NOT NULL,
  rail       TEXT    NOT NULL,
  amount     INTEGER NOT NULL,
  charges    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, seq)
);

-- The counted collections that did not succeed, which may still be paid late: a bit for each payment of a block of 60.
CREATE TABLE figures_unpaid (
  tenant TEXT    NOT NULL,
  status TEXT    NOT NULL,
  block  INTEGER NOT NULL,
  bits   INTEGER NOT NULL CHECK (bits >= 0),
  PRIMARY KEY (tenant, status, block)
);

-- At most one row. A pass adds 1 to passes, so of two passes at once the second fails. counted_to is the time up to which the figures are
-- complete, late_from the time from which payments that were paid late are looked for.
CREATE TABLE figures_state (
  one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  passes     INTEGER NOT NULL,
  counted_to INTEGER NOT NULL,
  late_from  INTEGER NOT NULL
);
