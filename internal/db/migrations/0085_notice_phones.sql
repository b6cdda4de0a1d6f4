-- owner: notice

-- The phone numbers at which people receive notices about money and security when mail fails.
CREATE TABLE notice_phones (
  person     TEXT    NOT NULL PRIMARY KEY,
  number     TEXT    NOT NULL,
  changed_at INTEGER NOT NULL
);
