-- owner: approval
-- What an act made and its maker is shown once, such as the text of a key: sealed, and kept for a day at most.

CREATE TABLE act_secrets (
  act      TEXT    NOT NULL PRIMARY KEY,
  sealed   BLOB    NOT NULL,
  kept_at  INTEGER NOT NULL,
  shown_at INTEGER NOT NULL DEFAULT 0,
  session  TEXT    NOT NULL DEFAULT '' -- that it was shown to
);
