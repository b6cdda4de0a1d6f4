package sample

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/senderid"
)

// paymentsADay is the approximate number of payments of both shops on an ordinary day. failing is the percentage of
// payments that fail.
const (
	paymentsADay = 40
	failing      = 4
)

// weekly is the relative traffic of each weekday, from Sunday. Its mean is 1.
var weekly = [7]float64{0.42, 1.0, 0.95, 1.0, 1.1, 1.33, 1.2}

// hourly is the shape of a day: the share of requests in each hour (Ghana's time is UTC).
var hourly = [24]int{7: 2, 8: 6, 9: 9, 10: 11, 11: 11, 12: 9, 13: 8, 14: 8, 15: 9, 16: 10, 17: 9, 18: 6, 19: 2}

// plan draws all events in order. It makes no request.
func (m *maker) plan(days int) (steps []step) {
	for n, s := range m.shops {
		random := rand.New(rand.NewPCG(m.seed, 100+uint64(n))) // a history, not a secret
		for day := range days + 1 {                            // the last day is today if it has begun
			midnight := m.made.From.AddDate(0, 0, day)
			if !midnight.Before(m.made.To) {
				break
			}
			steps = append(steps, m.payments(random, s, midnight, day, days)...)
			steps = append(steps, m.passwords(random, s, midnight)...)
			steps = append(steps, m.newsletters(random, s, midnight, day)...)
			if day > 0 && day%30 == 0 {
				steps = append(steps, step{midnight.Add(8 * time.Hour), func(ctx context.Context) error {
					if err := m.operator.fund(ctx, s, 6_000*money.Cedi); err != nil {
						return err
					}
					return m.operator.sell(ctx, s, 600)
				}})
			}
		}
	}
	steps = append(steps, m.senders(days)...)
	steps = append(steps, m.misstated(days)...)
	steps = append(steps, m.stuck(), m.statements())
	steps = slices.DeleteFunc(steps, func(s step) bool { return !s.at.Before(m.made.To) })
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return steps
}

// payments draws a shop's payments of a day.
func (m *maker) payments(random *rand.Rand, s *shop, midnight time.Time, day, days int) (steps []step) {
	growth := 0.88 + 0.24*float64(day)/float64(days)
	mean := paymentsADay * s.share * weekly[midnight.Weekday()] * growth
	count := int(math.Round(mean * (0.85 + 0.3*random.Float64())))
	times := make([]time.Time, count)
	for i := range times {
		times[i] = midnight.Add(timeOfDay(random))
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range times {
		if !at.Before(m.made.To) {
			break
		}
		s.number++
		o := order{shop: s, kind: s.drawKind(random), reference: fmt.Sprintf("%s-%s-%05d", s.prefix, at.Format("060102"), s.number), who: pick(random, s.people),
			bank: random.IntN(1_000), pack: random.IntN(1_000), wait: 5*time.Second + time.Duration(random.ExpFloat64()*18*float64(time.Second)).Truncate(time.Millisecond)}
		o.wait = min(o.wait, 4*time.Minute)
		o.amount = s.amount(random, o.kind)
		o.account = fmt.Sprintf("%013d", 1_010_000_000_000+random.Int64N(900_000_000))
		if random.IntN(100) < failing {
			o.end = declined + ending(random.IntN(3))
			m.made.Failing++
		}
		if day == days*4/5 && s == m.shops[1] { // the day on which its shop system moved
			o.old = true
		}
		m.made.Payments++
		steps = append(steps, m.steps(o, at)...)
	}
	return steps
}

// timeOfDay draws a time in the hours of business.
func timeOfDay(random *rand.Rand) time.Duration {
	total := 0
	for _, weight := range hourly {
		total += weight
	}
	drawn := random.IntN(total)
	for hour, weight := range hourly {
		if drawn -= weight; drawn < 0 {
			return time.Duration(hour)*time.Hour + time.Duration(random.Int64N(int64(time.Hour))).Truncate(time.Millisecond)
		}
	}
	return 0
}

func (s *shop) drawKind(random *rand.Rand) kind {
	total := 0.0
	for _, parts := range s.mix {
		total += parts
	}
	drawn := random.Float64() * total
	for k, parts := range s.mix {
		if drawn -= parts; drawn < 0 {
			return kind(k)
		}
	}
	return collection
}

// passwords draws a shop's one-time passwords of a day. Most are entered in time.
func (m *maker) passwords(random *rand.Rand, s *shop, midnight time.Time) (steps []step) {
	count := int(s.otps*weekly[midnight.Weekday()] + random.Float64())
	for range count {
		p := &password{shop: s, who: pick(random, s.people)}
		at, typed := midnight.Add(timeOfDay(random)), 8*time.Second+time.Duration(random.IntN(45_000))*time.Millisecond
		entered := random.IntN(100) < 88
		if !s.texts24(m, at) {
			continue
		}
		m.made.OTPs++
		steps = append(steps, step{at, func(ctx context.Context) error { return m.sendPassword(ctx, p) }})
		if entered {
			steps = append(steps, step{at.Add(typed), func(ctx context.Context) error { return m.enterPassword(ctx, p) }})
		}
	}
	return steps
}

// texts24 reports whether a shop may send texts at a time: the second shop's sender ID is approved on its second day.
func (s *shop) texts24(m *maker, at time.Time) bool {
	return s == m.shops[0] || at.After(m.made.From.AddDate(0, 0, 2))
}

// newsletters draws the campaign of a day.
func (m *maker) newsletters(random *rand.Rand, s *shop, midnight time.Time, day int) []step {
	at := midnight.Add(9*time.Hour + 30*time.Minute + time.Duration(random.IntN(3_600_000))*time.Millisecond)
	text := pick(random, s.texts)
	if midnight.Weekday() != s.newsletter || day/7%s.every != 0 || !s.texts24(m, at) {
		return nil
	}
	m.made.Campaigns++
	return []step{{at, func(ctx context.Context) error { return m.sendCampaign(ctx, s, text) }}}
}

// senders plans the sender IDs: one is approved at the beginning, one rejected on the way, and two wait for an
// operator at the end.
func (m *maker) senders(days int) []step {
	adom, keta := m.shops[0], m.shops[1]
	at := func(day int, hour, minute int) time.Time {
		return m.made.From.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	request := func(s *shop, name, purpose string) func(context.Context) error {
		return func(ctx context.Context) error { return m.requestSender(ctx, s, name, purpose) }
	}
	m.made.InReview = 2
	return []step{
		{at(0, 9, 10), request(keta, "KetaCrafts", "Orders and market days of Keta Crafts")},
		{at(1, 11, 20), func(ctx context.Context) error { return m.approveSender(ctx, keta, "KetaCrafts") }},
		{at(days/2, 10, 5), request(adom, "WinBig", "A lottery for our customers")},
		{at(days/2, 15, 40), func(ctx context.Context) error {
			return m.operator.review(ctx, adom, "WinBig", senderid.Rejected, "Names must say who sends. Ask again with the name of the shop")
		}},
		{at(days-2, 14, 15), request(adom, "AdomOffers", "Weekly offers of Adom Stores, apart from receipts")},
		{at(days-1, 10, 50), request(keta, "KetaMarket", "Reminders of market days to our weavers")},
	}
}

// stuck plans a payout on the last afternoon whose outcome stays unknown.
func (m *maker) stuck() step {
	s := m.shops[0]
	m.made.Stuck = 1
	m.made.Payments++
	at := m.made.To.Truncate(24 * time.Hour).Add(-24*time.Hour + 16*time.Hour + 42*time.Minute)
	return step{at, func(ctx context.Context) error {
		s.number++
		return m.pay(ctx, order{shop: s, kind: walletPayout, reference: fmt.Sprintf("%s-%s-%05d", s.prefix, at.Format("060102"), s.number),
			who: person{phone: "0244318075", network: "MTN", first: "Akua", last: "Darko"}, amount: 450 * money.Cedi, end: stuckForNow})
	}}
}
