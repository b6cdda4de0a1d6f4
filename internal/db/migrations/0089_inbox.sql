-- owner: inbox
-- Texts from handsets. A number or short code belongs to an account, whole (keyword is empty) or by the first word of the text.

CREATE TABLE inbox_numbers (
  mode       TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  number     TEXT    NOT NULL CHECK (number <> ''),
  keyword    TEXT    NOT NULL,
  tenant     TEXT    NOT NULL CHECK (tenant <> ''),
  answers    INTEGER NOT NULL CHECK (answers IN (0, 1)), -- STOP and START are answered
  created_at INTEGER NOT NULL,
  PRIMARY KEY (mode, number, keyword)
);

CREATE INDEX inbox_numbers_tenant ON inbox_numbers (tenant);

-- tenant is empty if nobody has the number. missing counts the parts that never came. digest, session and sequence recognise a text
-- that an operator sends again. answer is the state of the answer to STOP or START.
CREATE TABLE inbox_texts (
  id          TEXT    NOT NULL PRIMARY KEY,
  tenant      TEXT    NOT NULL,
  mode        TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  sender      TEXT    NOT NULL,
  number      TEXT    NOT NULL,
  keyword     TEXT    NOT NULL,
  message     TEXT    NOT NULL,
  encoding    TEXT    NOT NULL,
  parts       INTEGER NOT NULL CHECK (parts > 0),
  missing     INTEGER NOT NULL CHECK (missing >= 0 AND missing < parts),
  word        TEXT    NOT NULL CHECK (word IN ('', 'stop', 'start')),
  answer      TEXT    NOT NULL CHECK (answer IN ('', 'due', 'sent', 'refused')),
  digest      TEXT    NOT NULL,
  session     TEXT    NOT NULL,
  sequence    INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  CHECK (answer = '' OR word <> '')
);

CREATE INDEX inbox_texts_tenant ON inbox_texts (tenant, id);
CREATE INDEX inbox_texts_digest ON inbox_texts (digest, received_at);
CREATE INDEX inbox_texts_sender ON inbox_texts (sender, received_at);
CREATE INDEX inbox_texts_received ON inbox_texts (received_at);

-- Parts of texts that are not complete. joined_at is when their text was stored: such parts recognise repeats for a while.
CREATE TABLE inbox_parts (
  mode        TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
  sender      TEXT    NOT NULL,
  number      TEXT    NOT NULL,
  reference   INTEGER NOT NULL,
  total       INTEGER NOT NULL CHECK (total BETWEEN 2 AND 255),
  no          INTEGER NOT NULL CHECK (no BETWEEN 1 AND total),
  encoding    TEXT    NOT NULL,
  octets      TEXT    NOT NULL, -- hexadecimal
  received_at INTEGER NOT NULL,
  joined_at   INTEGER NOT NULL,
  PRIMARY KEY (mode, sender, number, reference, total, no)
);

CREATE INDEX inbox_parts_received ON inbox_parts (received_at);
CREATE INDEX inbox_parts_open ON inbox_parts (sender) WHERE joined_at = 0;
