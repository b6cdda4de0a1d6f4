-- owner: notice
-- Facts of which people are notified, and the messages that carry them. A fact has one row, written with the fact itself. A periodic
-- worker finds its readers later and puts their facts together into messages.

CREATE TABLE notices (
  id         TEXT    NOT NULL PRIMARY KEY,
  event      TEXT    NOT NULL,
  place      TEXT    NOT NULL, -- whose people read it: a tenant's id; empty: the installation
  person     TEXT    NOT NULL DEFAULT '', -- the only reader; empty: everybody at the place who may see it
  actor      TEXT    NOT NULL DEFAULT '', -- the person who did it, who is not notified
  subject    TEXT    NOT NULL DEFAULT '', -- the id of what it is about
  lines      TEXT    NOT NULL DEFAULT '', -- the first things, one a line
  things     INTEGER NOT NULL DEFAULT 1 CHECK (things > 0),
  made_at    INTEGER NOT NULL,
  sorted_at  INTEGER NOT NULL DEFAULT 0   -- when its readers were found; 0: not yet
);

CREATE INDEX notices_unsorted ON notices (id) WHERE sorted_at = 0;
CREATE INDEX notices_by_time ON notices (made_at);

CREATE TABLE notice_messages (
  id        TEXT    NOT NULL PRIMARY KEY, -- part of the Message-ID, the same at every attempt
  person    TEXT    NOT NULL,
  channel   TEXT    NOT NULL CHECK (channel IN ('email', 'sms', 'hook')),
  topic     TEXT    NOT NULL,
  address   TEXT    NOT NULL,
  title     TEXT    NOT NULL,
  body      TEXT    NOT NULL, -- sealed where secret, and empty then once it was delivered or given up
  secret    INTEGER NOT NULL DEFAULT 0 CHECK (secret IN (0, 1)),
  instead   TEXT    NOT NULL DEFAULT '', -- the message whose channel failed and that this one replaces
  state     TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
  tries     INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
  error     TEXT    NOT NULL DEFAULT '',
  made_at   INTEGER NOT NULL,
  ends_at   INTEGER NOT NULL, -- when an undelivered message is given up
  ended_at  INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX notice_messages_of_person ON notice_messages (person, made_at);
CREATE INDEX notice_messages_by_time ON notice_messages (made_at);
CREATE INDEX notice_messages_pending ON notice_messages (channel) WHERE state = 'pending';
CREATE UNIQUE INDEX notice_messages_instead ON notice_messages (instead, channel) WHERE instead <> '';

CREATE TABLE notice_readers (
  notice  TEXT    NOT NULL,
  person  TEXT    NOT NULL,
  role    TEXT    NOT NULL,
  topic   TEXT    NOT NULL,
  due_at  INTEGER NOT NULL,
  message TEXT    NOT NULL DEFAULT '', -- empty: not in a message yet
  PRIMARY KEY (notice, person)
);

CREATE INDEX notice_readers_due ON notice_readers (person, topic, due_at) WHERE message = '';
CREATE INDEX notice_readers_of_message ON notice_readers (message) WHERE message <> '';

-- Conditions that last, such as a payment whose outcome is unknown. A condition is notified once, when it begins.
CREATE TABLE notice_claims (
  event     TEXT    NOT NULL,
  part      TEXT    NOT NULL, -- which worker reports it, where several do
  name      TEXT    NOT NULL,
  notice    TEXT    NOT NULL,
  raised_at INTEGER NOT NULL,
  ended_at  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (event, part, name)
);

CREATE INDEX notice_claims_ended ON notice_claims (ended_at) WHERE ended_at > 0;

CREATE TABLE notice_choices (
  person     TEXT    NOT NULL,
  topic      TEXT    NOT NULL,
  choice     TEXT    NOT NULL CHECK (choice IN ('at_once', 'daily', 'never')),
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (person, topic)
);
