-- owner: approval
-- Acts of a tenant's own people, and how many checkers these need by the tenant's own policy.

ALTER TABLE acts ADD COLUMN place TEXT NOT NULL DEFAULT ''; -- whose people make and check it; empty: the installation's

CREATE INDEX acts_of_place ON acts (place, id);

CREATE TABLE act_policy_own (
  kind     TEXT    NOT NULL,
  tenant   TEXT    NOT NULL CHECK (tenant <> ''),
  pesewas  INTEGER NOT NULL CHECK (pesewas >= 0),
  checkers INTEGER NOT NULL CHECK (checkers BETWEEN 0 AND 2),
  PRIMARY KEY (kind, tenant, pesewas)
);
