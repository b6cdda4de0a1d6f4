package db

import "testing"

// The migration gives the log of exchanges another key, and each row the id of its payment.
func TestMigration_linksExchangesToPayments(t *testing.T) {
	openEach(t, func(t *testing.T, open func() *DB) {
		d := open()
		if err := d.migrate(t.Context(), some(t, "0006_route.sql", "0007_payments.sql")); err != nil {
			t.Fatal(err)
		}
		const (
			first, left, second = "0b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21", "1b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21", "2b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21"
			payment             = `INSERT INTO payments (tenant, kind, id, seq, mode, channel, reference, provider_reference, amount, charges, fee_bearer, plan, account, account_name,
				bank_id, label, callback_url, access_key, idempotency_hash, parent, child, details, status, rail, created_at, settled_at, attempt, attempt_reference)
				VALUES ('shop', 'payout', 'p', 1, 'test', 'MTN', 'order-000001', $1, 1, 0, 'merchant', 1, '', '', '', '', '', '', '', '', '', '', 'pending', 'hubtel', 1, 0, 3, $2)`
			attempt  = `INSERT INTO attempts (tenant, kind, payment, number, rail, provider_reference, posts, class, reason, ended_at) VALUES ('shop', 'payout', 'p', 2, 'mtn', $1, 1, '', '', 1)`
			exchange = `INSERT INTO provider_exchanges (id, reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error)
				VALUES ($1, $2, 5, 1, 'mtn', 'test', 'disburse', 'POST', 'u', 202, 'r', 'a', 1, '')`
		)
		if err := d.Write(t.Context(), func(tx *Tx) error {
			tx.Defer(payment, 1, first, second)
			tx.Defer(attempt, 1, left)
			for id, reference := range map[string]string{
				"1": "0b9e1c9e8f1d4c7b9d530c4f9a8e7d21", "2": "1b9e1c9e8f1d4c7b9d530c4f9a8e7d21", "3": "2b9e1c9e8f1d4c7b9d530c4f9a8e7d21", "4": "", "5": "gone",
			} {
				tx.Defer(exchange, 1, id, reference)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all, found, whole int64
		if err := d.Read(t.Context(), func(tx *Tx) error {
			_, err := tx.One(`SELECT count(*), count(*) FILTER (WHERE payment = 'p' AND id IN ('1', '2', '3') OR payment = '' AND id IN ('4', '5')),
				count(*) FILTER (WHERE at = 5 AND status = 202 AND answer = 'a' AND operation = 'disburse' AND written = 1) FROM provider_exchanges`, nil, &all, &found, &whole)
			return err
		}); err != nil || all != 5 || found != 5 || whole != 5 {
			t.Errorf("%d exchanges are left, %d with their payment, %d as they were: %v", all, found, whole, err)
		}
	})
}
