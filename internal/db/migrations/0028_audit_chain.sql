-- owner: audit
-- The audit log (made with the tables of access) says from where each entry came and which person it names, and its
-- entries are linked into a chain, each link with a hash over the entry and the link before it. An entry is written
-- with linked = 0, also by nodes of the release before, and linked once it is committed.

ALTER TABLE audit_log ADD COLUMN person TEXT NOT NULL DEFAULT ''; -- id; empty: a command without a person

ALTER TABLE audit_log ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- an address, or the machine of a command

ALTER TABLE audit_log ADD COLUMN linked INTEGER NOT NULL DEFAULT 0 CHECK (linked IN (0, 1));

CREATE INDEX audit_log_unlinked ON audit_log (id) WHERE linked = 0;

CREATE TABLE audit_chain (
  number    INTEGER NOT NULL PRIMARY KEY CHECK (number > 0),
  tenant    TEXT    NOT NULL,
  entry     TEXT    NOT NULL,
  linked_at INTEGER NOT NULL,
  hash      TEXT    NOT NULL CHECK (length(hash) = 64)
);

CREATE UNIQUE INDEX audit_chain_entry ON audit_chain (tenant, entry);
