-- owner: approval
-- How many checkers acts of a kind need from an amount on, at the installation (tenant '') or at one tenant. Without a line
-- an act needs one in production, where there is somebody else who may check.

CREATE TABLE act_policy (
  kind     TEXT    NOT NULL,
  tenant   TEXT    NOT NULL,
  pesewas  INTEGER NOT NULL CHECK (pesewas >= 0),
  checkers INTEGER NOT NULL CHECK (checkers BETWEEN 0 AND 2),
  PRIMARY KEY (kind, tenant, pesewas)
);

ALTER TABLE acts ADD COLUMN pesewas INTEGER NOT NULL DEFAULT 0; -- what an act moves, by which the policy is looked up
