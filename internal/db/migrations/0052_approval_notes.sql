-- owner: approval

-- What others should know of an approval: it is one of the approver's first, who invited the approver, and what the approver
-- shares with the requester.
ALTER TABLE act_checks ADD COLUMN note TEXT NOT NULL DEFAULT '';
CREATE INDEX act_checks_of_checker ON act_checks (checker);
