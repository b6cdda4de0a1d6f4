-- owner: payments/book

-- Notes of operators about payments. A note never changes, except that the erasure of a person replaces its text. Accounts never see notes.
--
-- Expand first: a node of the release before reads and writes neither of these tables.
CREATE TABLE payment_notes (
  payment TEXT NOT NULL,
  id TEXT NOT NULL, -- given by the form, so that a form sent twice is one note
  author TEXT NOT NULL CHECK (author <> ''), -- id of the person
  author_name TEXT NOT NULL,
  at INTEGER NOT NULL,
  text TEXT NOT NULL CHECK (text <> ''),
  PRIMARY KEY (payment, id)
) STRICT;

-- The person who takes care of a payment that needs attention.
CREATE TABLE payment_owners (
  payment TEXT NOT NULL PRIMARY KEY,
  person TEXT NOT NULL CHECK (person <> ''),
  name TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
