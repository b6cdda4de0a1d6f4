-- owner: batch

-- An uploaded file whose columns its maker has not confirmed yet. It is deleted once it is a draft, and after an hour. A person has
-- one such file at an account.
CREATE TABLE batch_files (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  maker TEXT NOT NULL,
  name TEXT NOT NULL CHECK (name <> ''), -- of the batch
  parts INTEGER NOT NULL CHECK (parts > 0),
  preview TEXT NOT NULL, -- its columns and first rows, JSON
  created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX batch_files_maker ON batch_files (tenant, maker);

CREATE TABLE batch_file_parts (
  file TEXT NOT NULL,
  part INTEGER NOT NULL CHECK (part > 0),
  content BLOB NOT NULL,
  PRIMARY KEY (file, part)
);

-- The columns that a person of the account confirmed for files with the same headings.
CREATE TABLE batch_mappings (
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,      -- a hash of the headings
  headings TEXT NOT NULL, -- JSON
  columns TEXT NOT NULL,  -- column by field, JSON
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
);
