-- owner: reconcile

-- A source is one account at a provider or bank whose statements are given as files. layout is how its files are read, as a person has
-- confirmed it; while a file is read, reading names its statement until a time.
CREATE TABLE statement_sources (
  id TEXT NOT NULL PRIMARY KEY, -- mode/profile/account
  profile TEXT NOT NULL CHECK (profile <> ''),
  provider TEXT NOT NULL, -- empty: a bank
  account TEXT NOT NULL CHECK (account <> ''),
  mode TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  layout TEXT NOT NULL DEFAULT '', -- JSON
  reading TEXT NOT NULL DEFAULT '',
  reading_until INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  CHECK ((reading = '') = (reading_until = 0))
);

-- A file. It is reading until all its lines are stored: the same file again goes on with it.
CREATE TABLE statements (
  id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  file_name TEXT NOT NULL,
  digest TEXT NOT NULL CHECK (digest <> ''), -- of its bytes
  state TEXT NOT NULL CHECK (state IN ('reading', 'read')),
  uploader TEXT NOT NULL,      -- id of the person
  uploader_name TEXT NOT NULL,
  lines INTEGER NOT NULL CHECK (lines > 0),
  added INTEGER NOT NULL CHECK (added >= 0),
  changed INTEGER NOT NULL CHECK (changed >= 0),
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL CHECK (last_at >= first_at),
  opening INTEGER NOT NULL, -- balances; zero unless chains
  closing INTEGER NOT NULL,
  chains INTEGER NOT NULL CHECK (chains IN (0, 1)), -- each balance follows from the one before
  compared INTEGER NOT NULL DEFAULT 0 CHECK (compared IN (0, 1)), -- the payments of its time were looked for
  uploaded_at INTEGER NOT NULL,
  read_at INTEGER NOT NULL DEFAULT 0,
  CHECK ((read_at <> 0) = (state = 'read'))
);
CREATE UNIQUE INDEX statements_digest ON statements (source, digest);

-- One movement, in its newest version. identity is the provider's id, or what else tells the lines of a day apart. judged is 0 until
-- matching has decided about this version.
CREATE TABLE statement_lines (
  id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  identity TEXT NOT NULL CHECK (identity <> ''),
  statement TEXT NOT NULL, -- that brought this version
  file_row INTEGER NOT NULL CHECK (file_row > 0),
  version INTEGER NOT NULL DEFAULT 1 CHECK (version > 0),
  day INTEGER NOT NULL, -- since 1970
  at INTEGER NOT NULL,
  amount INTEGER NOT NULL, -- above zero: it came in
  fee INTEGER NOT NULL CHECK (fee >= 0),
  fee_known INTEGER NOT NULL CHECK (fee_known IN (0, 1)),
  balance INTEGER,
  their_id TEXT NOT NULL,
  reference TEXT NOT NULL,
  settlement TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('success', 'failed', 'pending')),
  type TEXT NOT NULL,
  party TEXT NOT NULL,
  narrative TEXT NOT NULL,
  judged INTEGER NOT NULL DEFAULT 0 CHECK (judged IN (0, 1))
);
CREATE UNIQUE INDEX statement_lines_identity ON statement_lines (source, identity);
CREATE INDEX statement_lines_open ON statement_lines (source, id) WHERE judged = 0;
CREATE INDEX statement_lines_day ON statement_lines (source, day);
CREATE INDEX statement_lines_statement ON statement_lines (statement, file_row);
CREATE INDEX statement_lines_reference ON statement_lines (reference) WHERE reference <> '';
CREATE INDEX statement_lines_their_id ON statement_lines (their_id) WHERE their_id <> '';
CREATE INDEX statement_lines_party ON statement_lines (party, amount) WHERE party <> '';
CREATE INDEX statement_lines_settlement ON statement_lines (settlement) WHERE settlement <> '';

-- What a line was before its provider changed it.
CREATE TABLE statement_versions (
  line TEXT NOT NULL,
  version INTEGER NOT NULL,
  statement TEXT NOT NULL,
  file_row INTEGER NOT NULL,
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  fee INTEGER NOT NULL,
  PRIMARY KEY (line, version)
);

-- A line is used once, and so is a movement of a payment. A match without a payment is the line of a settlement, whose members are in
-- statement_settled.
CREATE TABLE statement_matches (
  line TEXT NOT NULL PRIMARY KEY,
  payment TEXT NOT NULL,
  leg TEXT NOT NULL CHECK (leg IN ('movement', 'reversal', 'settlement')),
  rule TEXT NOT NULL CHECK (rule IN ('provider_id', 'reference', 'settlement', 'similar', 'narrative', 'person')),
  maker TEXT NOT NULL, -- who matched it; empty: the rule
  made_at INTEGER NOT NULL,
  CHECK ((leg = 'settlement') = (payment = ''))
);
CREATE UNIQUE INDEX statement_matches_payment ON statement_matches (payment, leg) WHERE payment <> '';

CREATE TABLE statement_settled (
  line TEXT NOT NULL PRIMARY KEY, -- of the provider
  by_line TEXT NOT NULL           -- of the bank
);
CREATE INDEX statement_settled_by ON statement_settled (by_line);

-- A match that a person has undone is not made again by a rule.
CREATE TABLE statement_undone (
  line TEXT NOT NULL,
  payment TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason <> ''),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (line, payment)
);

CREATE TABLE statement_exceptions (
  id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('theirs_only', 'ours_only', 'amount', 'fee', 'state', 'twice')),
  line TEXT NOT NULL,    -- empty: there is none
  payment TEXT NOT NULL, -- empty: there is none
  amount INTEGER NOT NULL CHECK (amount >= 0), -- by how much the sides differ
  reason TEXT NOT NULL,
  at INTEGER NOT NULL, -- of the movement
  opened_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL DEFAULT 0,
  ending TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '', -- id of the person
  owner_name TEXT NOT NULL DEFAULT '',
  note TEXT NOT NULL DEFAULT '',
  CHECK (line <> '' OR payment <> ''),
  CHECK ((ended_at = 0) = (ending = ''))
);
CREATE UNIQUE INDEX statement_exceptions_open ON statement_exceptions (kind, line, payment) WHERE ended_at = 0;
CREATE INDEX statement_exceptions_list ON statement_exceptions (source, id) WHERE ended_at = 0;
CREATE INDEX statement_exceptions_line ON statement_exceptions (line) WHERE line <> '';
CREATE INDEX statement_exceptions_payment ON statement_exceptions (payment) WHERE payment <> '';

-- Files that wait for a person to confirm how they are read. They are deleted with that, or after a day.
CREATE TABLE statement_drafts (
  id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  file_name TEXT NOT NULL,
  maker TEXT NOT NULL,
  parts INTEGER NOT NULL CHECK (parts > 0),
  made_at INTEGER NOT NULL
);
CREATE TABLE statement_draft_parts (
  draft TEXT NOT NULL,
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (draft, number)
);
