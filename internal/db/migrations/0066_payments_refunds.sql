-- owner: payments

-- A refund is a payout that gives a collection, or a part of it, back to its payer. refund_of is the collection, and refund_way how the
-- money goes, chosen before the debit. refund_open is 1 while the refund is open, and 2 while it waits for an approval as well.
--
-- Expand first: a node of the release before does not know the kind of a refund's job and leaves the job alone. Whatever else it would make of
-- a refund, or of the reversal of a refunded collection, these checks refuse.
ALTER TABLE payments ADD COLUMN refund_of TEXT NOT NULL DEFAULT '' CHECK (refund_of = '' OR kind = 'payout');
ALTER TABLE payments ADD COLUMN refund_way TEXT NOT NULL DEFAULT '' CHECK (refund_way IN ('', 'rail', 'payout') AND (refund_way = '') = (refund_of = ''));
ALTER TABLE payments ADD COLUMN refund_open INTEGER NOT NULL DEFAULT 0 CHECK (refund_open =
  CASE WHEN refund_of = '' OR status <> 'pending' THEN 0 WHEN held_until = 0 THEN 1 ELSE 2 END);
-- Of a collection: the sum of its refunds that are open or done. The reversal of such a collection posts nothing: it says so in last_word.
ALTER TABLE payments ADD COLUMN refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded >= 0 AND refunded <= amount
  AND (refunded = 0 OR kind = 'collection' AND status = 'success' AND (turned_at IS NULL OR last_word <> '')));
-- A collection has at most one open refund. An ordinary settlement changes neither index.
CREATE UNIQUE INDEX payments_refund_open ON payments (refund_of) WHERE refund_open <> 0;
CREATE INDEX payments_refund_of ON payments (refund_of) WHERE refund_of <> '';
