package db

// Waiting returns the number of transactions that wait for the gate.
func (d *DB) Waiting() (n int) {
	d.gate.mu.Lock()
	defer d.gate.mu.Unlock()
	for _, line := range d.gate.waiting {
		n += len(line)
	}
	return n
}
