-- owner: payments

-- A payout that waits for the approval of its account's own people is pending like any other, and has no job. While it is
-- marked it was never submitted: whatever does not know the mark cannot move it.
ALTER TABLE payments ADD COLUMN held_until INTEGER NOT NULL DEFAULT 0 CHECK (held_until = 0
  OR kind = 'payout' AND status = 'pending' AND attempt = 1 AND posts = 1 AND unsent = 0 AND sending_at = 0 AND class = '' AND escalated_at IS NULL);
