package ledger

import (
	"maps"
	"math"
	"slices"

	"github.com/makola/makola/internal/db"
)

// A Proof records the checked part of the ledger: the transfers before Next. Transfers are only ever added, so the
// proof is extended by later transfers, in sets. Later transfers do not change earlier findings.
type Proof struct {
	Next      int64         // microseconds since 1970
	Transfers int64         // number of checked transfers
	Sums      map[Key]int64 // amounts moved by the checked transfers, by account without a floor
}

// NewProof returns an empty proof.
func NewProof() *Proof { return &Proof{Next: math.MinInt64, Sums: map[Key]int64{}} }

const (
	// setOfTransfers is the approximate number of transfers in one set.
	setOfTransfers = 5000
	// setOfSubjects is the maximum number of subjects in one call of each.
	setOfSubjects = 1000
)

const (
	sqlSetEnd = `SELECT at FROM transfers WHERE at >= $1 AND at <= $2 ORDER BY at LIMIT 1 OFFSET $3`
	sqlSums   = `SELECT asset, account, CAST(sum(moved) AS INTEGER), CAST(sum(n) AS INTEGER) FROM (
	SELECT asset, to_account AS account, CASE WHEN wallet = to_account THEN 0 ELSE amount END AS moved, 1 AS n FROM transfers WHERE at >= $1 AND at <= $2
	UNION ALL SELECT asset, from_account, CASE WHEN wallet = from_account THEN 0 ELSE -amount END, 0 FROM transfers WHERE at >= $1 AND at <= $2
) AS x GROUP BY asset, account`
	// Each transfer of a wallet must continue the number and the balance of the transfer before it. The set is
	// materialized: PostgreSQL would otherwise read it in the order of the result, which is all transfers of all wallets.
	sqlRunning = `WITH running AS MATERIALIZED (SELECT t.wallet, t.asset, t.sequence, t.balance, CASE WHEN t.to_account = t.wallet THEN t.amount ELSE -t.amount END AS moved,
	(SELECT b.balance FROM transfers b WHERE b.wallet = t.wallet AND b.sequence = t.sequence - 1) AS carried, w.sequence AS newest
	FROM transfers t LEFT JOIN wallets w ON w.id = t.wallet AND w.asset = t.asset WHERE t.at >= $1 AND t.at <= $2 AND t.wallet IS NOT NULL)
SELECT wallet, asset, sequence, balance, COALESCE(carried, 0) + moved, CASE WHEN carried IS NULL THEN 0 ELSE sequence - 1 END, COALESCE(newest, -1) FROM running
WHERE newest IS NULL OR sequence > newest OR sequence > 1 AND carried IS NULL OR balance <> COALESCE(carried, 0) + moved
ORDER BY wallet, sequence LIMIT 100`
	sqlSubjects = `SELECT DISTINCT subject FROM transfers WHERE at >= $1 AND at <= $2`
)

// Extend checks the next set of transfers up to the time last, and adds the set to the proof. It calls each, if not
// nil, with the subjects of the set, up to 1,000 at a time. It reports whether the proof has reached last.
func (p *Proof) Extend(tx *db.Tx, last int64, found *Findings, each func(subjects []string) error) (whole bool, err error) {
	if p.Next > last {
		return true, nil
	}
	end := last
	more, err := tx.One(sqlSetEnd, []any{p.Next, last, setOfTransfers}, &end)
	if err != nil {
		return false, err
	}
	if more {
		end = max(p.Next, end-1) // the set ends before the next time, unless all its transfers have the same time
	}
	moved, n, err := sumsOf(tx, p.Next, end)
	if err != nil {
		return false, err
	}
	var wrong Findings
	if err := checkRunning(tx, p.Next, end, &wrong); err != nil {
		return false, err
	}
	if each != nil {
		if err := subjectsOf(tx, p.Next, end, each); err != nil {
			return false, err
		}
	}
	// The proof changes after the last statement, so that a transaction that runs twice adds nothing twice.
	for k, sum := range moved {
		p.Sums[k] += sum
	}
	p.Transfers += n
	found.Join(wrong)
	if end == math.MaxInt64 {
		return true, nil
	}
	p.Next = end + 1
	return p.Next > last, nil
}

func sumsOf(tx *db.Tx, from, to int64) (sums map[Key]int64, n int64, err error) {
	sums = map[Key]int64{}
	err = tx.Query(sqlSums, []any{from, to}, func(r *db.Row) error {
		var k Key
		var moved, transfers int64
		err := r.Scan(&k.Asset, &k.ID, &moved, &transfers)
		if n += transfers; !k.ID.Floored() || moved != 0 {
			sums[k] = moved
		}
		return err
	})
	return sums, n, err
}

func subjectsOf(tx *db.Tx, from, to int64, each func(subjects []string) error) error {
	subjects, err := tx.Texts(sqlSubjects, from, to)
	for set := range slices.Chunk(subjects, setOfSubjects) {
		if err == nil {
			err = each(set)
		}
	}
	return err
}

func checkRunning(tx *db.Tx, from, to int64, found *Findings) error {
	return tx.Query(sqlRunning, []any{from, to}, func(r *db.Row) error {
		var wallet, asset string
		var sequence, balance, computed, before, last int64
		if err := r.Scan(&wallet, &asset, &sequence, &balance, &computed, &before, &last); err != nil {
			return err
		}
		switch {
		case last < 0:
			found.Add("%s has the transfer number %d of %s and no row of it", wallet, sequence, asset)
		case sequence > last:
			found.Add("%s has the transfer number %d, but its row counts %d transfers", wallet, sequence, last)
		case sequence > 1 && before == 0:
			found.Add("%s has no transfer before number %d", wallet, sequence)
		default:
			found.Add("%s number %d has the balance %d, but it should be %d", wallet, sequence, balance, computed)
		}
		return nil
	})
}

const (
	// Each wallet must have the balance and number of its last transfer. They are right because every transfer
	// continues the one before it.
	sqlWalletEnds = `SELECT w.id, w.asset, w.floor, w.balance, w.sequence, COALESCE(t.balance, 0), COALESCE(t.sequence, 0)
FROM wallets w LEFT JOIN transfers t ON t.wallet = w.id AND t.sequence = w.sequence AND t.asset = w.asset
WHERE w.balance < w.floor OR w.balance <> COALESCE(t.balance, 0) OR w.sequence <> COALESCE(t.sequence, 0)
	OR EXISTS (SELECT 1 FROM transfers n WHERE n.wallet = w.id AND n.sequence > w.sequence) ORDER BY w.id LIMIT 100`
	sqlShards = `SELECT asset, id, CAST(sum(balance) AS INTEGER) FROM shards GROUP BY asset, id`
	sqlMoved  = `SELECT CAST(COALESCE(sum(moved), 0) AS INTEGER), CAST(COALESCE(sum(CASE WHEN at < $3 THEN moved ELSE 0 END), 0) AS INTEGER) FROM (
	SELECT at, CASE WHEN to_account = $2 THEN amount ELSE -amount END AS moved FROM transfers
	WHERE asset = $1 AND (to_account = $2 OR from_account = $2) AND (wallet IS NULL OR wallet <> $2)) AS x`
)

// Close checks the transfers after the proof as well, without adding them. It then compares all transfers with the
// accounts. Each wallet must agree with its last transfer and its floor. Every other account must equal the sum of
// its transfers. The accounts of each asset must add up to zero. tx must see one snapshot. Close returns the accounts
// that differ from their sums; Confirm decides about those.
func (p *Proof) Close(tx *db.Tx, found *Findings, each func(subjects []string) error) (differ []Key, err error) {
	now := &Proof{Next: p.Next, Sums: maps.Clone(p.Sums)}
	var wrong Findings
	for whole := false; !whole; {
		if whole, err = now.Extend(tx, math.MaxInt64, &wrong, each); err != nil {
			return nil, err
		}
	}
	if err := checkWallets(tx, &wrong); err != nil {
		return nil, err
	}
	held := map[Key]int64{}
	err = tx.Query(sqlShards, nil, func(r *db.Row) error {
		var k Key
		var balance int64
		err := r.Scan(&k.Asset, &k.ID, &balance)
		held[k] = balance
		return err
	})
	if err != nil {
		return nil, err
	}
	for k, moved := range now.Sums {
		if moved != held[k] {
			differ = append(differ, k)
		}
	}
	for k, balance := range held {
		if _, moved := now.Sums[k]; !moved && balance != 0 {
			differ = append(differ, k)
		}
	}
	if err := checkZero(tx, &wrong); err != nil {
		return nil, err
	}
	found.Join(wrong)
	slices.SortFunc(differ, compareKeys)
	return differ, nil
}

// Confirm sums all transfers of the accounts that differ from the proof. A transfer may be committed after the proof
// has passed its time. If an account agrees with all of its transfers, it is right, and Confirm corrects the proof.
// It reads all transfers, so call it within ReadWhole.
func (p *Proof) Confirm(tx *db.Tx, differ []Key, found *Findings) error {
	for _, k := range differ {
		var held, moved, before int64
		if _, err := tx.One(sqlShardBalance, []any{k.ID, k.Asset}, &held); err != nil {
			return err
		}
		if _, err := tx.One(sqlMoved, []any{k.Asset, k.ID, p.Next}, &moved, &before); err != nil {
			return err
		}
		if p.Sums[k] = before; held != moved {
			found.Add("%s %s holds %d, its transfers move %d", k.Asset, k.ID, held, moved)
		}
	}
	return nil
}

func checkWallets(tx *db.Tx, found *Findings) error {
	return tx.Query(sqlWalletEnds, nil, func(r *db.Row) error {
		var id, asset string
		var floor, balance, sequence, carried, last int64
		err := r.Scan(&id, &asset, &floor, &balance, &sequence, &carried, &last)
		found.Add("%s %s holds %d (floor %d) after %d transfers; the transfer number %d carries %d, or a later one exists", asset, id, balance, floor, sequence, last, carried)
		return err
	})
}

// checkZero checks that all accounts of each asset add up to zero.
func checkZero(tx *db.Tx, found *Findings) error {
	accounts, err := TrialBalanceIn(tx)
	sums := map[Asset]int64{}
	for _, a := range accounts {
		sums[a.Asset] += a.Balance
	}
	for asset, sum := range sums {
		if sum != 0 {
			found.Add("the accounts of %s add up to %d, not to zero", asset, sum)
		}
	}
	return err
}
