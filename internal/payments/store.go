package payments

import (
	"context"
)

// find reads payments of one tenant and kind by id; get reads one.
func (p *Payments) get(ctx context.Context, tenant string, kind Kind, id string) (Payment, bool, error) {
	panic("payments: get is not written yet")
}
