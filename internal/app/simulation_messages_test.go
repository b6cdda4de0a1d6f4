package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/smsc"
)

// The simulation of messages is a year of faults for texts. Customers send campaigns and one-time passwords over SMPP
// connections to a message centre. The centre throttles, refuses, cuts connections, and sends receipts late, twice or never.
// The database loses answers, and nodes start and stop. With an even seed the installation on SQLite resends what a crash left
// unknown.

const (
	// textsAtOnce is the number of requests that customers make at the same time in one round.
	textsAtOnce = 20
	// textRoundsBetweenRestarts is the number of rounds between two restarts of a node during a delivery.
	textRoundsBetweenRestarts = 7
	// moreTextRounds is the maximum number of additional rounds for the missing outcomes of the table.
	moreTextRounds = 16
)

func TestSimulation_messages(t *testing.T) {
	eachSimulation(t, "messages", func(t *testing.T, engine db.Engine, run simulationRun) {
		s := newTexting(t, engine, run.seed)
		for length := cmp.Or(run.length, gateOr(simulationTextRounds, wholeTextRounds)); s.rounds < length && !t.Failed(); {
			s.turn()
			s.round()
		}
		s.clearUp()
		s.cover()
		s.verify()
	})
}

// texting is a simulated installation whose customers send messages.
type texting struct {
	*world
	texters []*texter
	sends   []*send
	keyed   []*send // requests of the last day, which may be repeated
	numbers int     // number of phone numbers that got a one-time password
	checked int     // number of verified one-time passwords
	look    *time.Ticker
}

// texter is a customer that sends messages.
type texter struct {
	*customer
	sender, pending string              // an approved sender ID, and one that is not approved
	groups          map[string][]string // numbers by group
	optedOut        map[string]bool     // by number
	credits         int64               // number of credits sold
}

func newTexting(t *testing.T, engine db.Engine, seed uint64) *texting {
	s := &texting{look: time.NewTicker(10 * time.Millisecond)}
	t.Cleanup(s.look.Stop)
	s.world = newWorld(t, engine, seed, func(w *world) {
		serveSMPP(t, w.sim)
		w.sim.Centre.Set(smsc.Options{EnquireEvery: quietCentre})
		w.sim.Centre.CountSegments(true)
		w.cfg.SMPP.Resend = engine == db.SQLite && (seed-uint64(engine))%2 == 0
	})
	n := s.nodes[0]
	ctx := context.Background()
	for i, c := range s.customers {
		x := &texter{customer: c, groups: map[string][]string{}, optedOut: map[string]bool{}, credits: []int64{5_000_000, 5_000_000, 400}[i]}
		for _, id := range []*string{&x.sender, &x.pending} {
			asked, _, err := n.senders.Request(ctx, idempotency.Caller{Tenant: c.id}, fmt.Sprintf("Shop %c %d", 'A'+i, len(x.sender)), "simulation")
			if err != nil {
				t.Fatal(err)
			}
			*id = asked.ID
		}
		sale := uuid.NewString()
		s.act(n, func(tx *db.Tx) error {
			if _, err := n.senders.Review(tx, c.id, x.sender, senderid.Approved, "", "test"); err != nil {
				return err
			}
			_, err := n.messaging.SellCredits(tx, c.id, sale, x.credits)
			return err
		})
		s.texters = append(s.texters, x)
		s.addGroup(x, 40)
	}
	s.rest()
	return s
}

// addGroup creates a contact group with a number of contacts.
func (s *texting) addGroup(x *texter, size int) string {
	s.t.Helper()
	g, _, err := s.node().contacts.AddGroup(context.Background(), idempotency.Caller{Tenant: x.id}, fmt.Sprintf("Friends %d", s.random.Uint32()), "")
	if err != nil {
		s.t.Fatal(err)
	}
	var list []contacts.NewContact
	for range size {
		number := s.number()
		list = append(list, contacts.NewContact{Phone: number})
		x.groups[g.ID] = append(x.groups[g.ID], international(number))
	}
	if _, _, err := s.node().contacts.AddContacts(context.Background(), idempotency.Caller{Tenant: x.id}, g.ID, list); err != nil {
		s.t.Fatal(err)
	}
	return g.ID
}

// textMagic has the last digits of numbers with a special outcome. Missing answers and a full queue come from injected faults
// instead, because their timing depends on the machine.
var textMagic = []string{"001", "003", "004", "008", "020", "021", "024", "026"}

// number draws a mobile number in a form in which people write it.
func (s *texting) number() string {
	prefix := simPrefix[simNetworks[s.random.IntN(len(simNetworks))]]
	if s.random.IntN(8) == 0 {
		return prefix + "0000" + textMagic[s.random.IntN(len(textMagic))]
	}
	return fmt.Sprintf("%s55%05d", prefix, s.random.IntN(3_000))
}

func international(number string) string { return "233" + strings.TrimPrefix(number, "0") }

// send is one request for messages, with its response.
type send struct {
	from     *texter
	otp      bool
	id       string // contained in every part of its text
	text     string // text of the campaign
	path     string
	body     map[string]any  // nil: all values are in the path
	key      string          // Idempotency-Key
	named    map[string]bool // all numbers, also those that opted out
	to       map[string]bool
	invalid  int
	excluded int
	wrong    string // reason why it must be refused
	vanishes bool   // one of its groups is deleted during the request
	first    *send  // the request that it repeats
	at       time.Time
	weather  string

	status   int
	message  string
	campaign string
	cost     int64
	unclear  bool // an answer was lost, so the request may have been accepted
}

// draw makes a random request.
func (s *texting) draw(place int) *send {
	m := &send{from: s.texters[s.random.IntN(len(s.texters))], id: fmt.Sprintf("m%d-%dx", s.rounds, place), weather: s.weather.name(), at: s.clock.Now(),
		named: map[string]bool{}, to: map[string]bool{}}
	if s.random.IntN(4) == 0 {
		m.key = uuid.NewString()
	}
	if s.random.IntN(6) == 0 {
		s.drawOTP(m)
		return m
	}
	sender, groups := s.drawText(m), []string(nil)
	var numbers, recipients []string
	for range []int{1, 1, 2, 3, 8, 20, 250}[s.random.IntN(7)] {
		numbers = append(numbers, s.number())
		if s.random.IntN(6) == 0 { // a group that exists
			numbers = append(numbers, numbers[s.random.IntN(len(numbers))])
		}
		if s.random.IntN(12) == 0 {
			recipients = append(recipients, []string{"12", "024", "not a number", "0555555555555"}[s.random.IntN(4)])
			m.invalid++
		}
	}
	for _, n := range numbers {
		m.named[international(n)] = true
		recipients = append(recipients, []string{n, international(n), "+" + international(n)}[s.random.IntN(3)])
	}
	if s.random.IntN(5) == 0 {
		ids := slices.Sorted(maps.Keys(m.from.groups))
		groups = append(groups, ids[s.random.IntN(len(ids))])
		m.join(groups[0])
	}
	if other := s.texters[(slices.Index(s.texters, m.from)+1)%len(s.texters)]; m.wrong == "" && s.random.IntN(20) == 0 {
		groups, m.wrong = append(groups, slices.Sorted(maps.Keys(other.groups))[0]), "the group of another"
	}
	m.exclude()
	if len(m.to) == 0 {
		m.wrong = "nobody to send to"
	}
	m.path = "/sms-api/send"
	if len(recipients) < 20 && s.random.IntN(6) == 0 {
		m.path += "?" + url.Values{"sender_id": {sender}, "message": {m.text}, "recipients": {strings.Join(recipients, ",")}, "group_id_list": groups}.Encode()
		return m
	}
	m.body = map[string]any{"sender_id": sender, "message": m.text, "recipients": recipients}
	if len(groups) > 0 {
		m.body["group_id_list"] = groups
	}
	return m
}

// join adds the numbers of a group.
func (m *send) join(group string) {
	for _, n := range m.from.groups[group] {
		m.named[n] = true
	}
}

// exclude removes numbers that opted out.
func (m *send) exclude() {
	m.to, m.excluded = map[string]bool{}, 0
	for n := range m.named {
		if m.from.optedOut[n] {
			m.excluded++
		} else {
			m.to[n] = true
		}
	}
}

// drawText draws a text in which every part contains the ids of the request and of its customer.
func (s *texting) drawText(m *send) (sender string) {
	sender = m.from.sender
	switch m.text = m.id; s.random.IntN(5) {
	case 0:
		m.text = m.filled(200) // two parts
	case 1:
		m.text = m.filled(400) // three
	case 2:
		m.text = "Akwaaba \u20b5 " + m.filled(100) // two parts of UCS-2
	}
	switch s.random.IntN(20) {
	case 0:
		sender, m.wrong = s.texters[(slices.Index(s.texters, m.from)+1)%len(s.texters)].sender, "the sender ID of another"
	case 1:
		sender, m.wrong = m.from.pending, "a sender ID that is not approved"
	case 2:
		m.text, m.wrong = m.id+"\a", "a control character"
	}
	return sender
}

// filled returns a text of about n characters.
func (m *send) filled(characters int) string {
	return strings.TrimSpace(strings.Repeat(m.id+" ", characters/(len(m.id)+1)))
}

// drawOTP draws a request for a one-time password, usually to a new number.
func (s *texting) drawOTP(m *send) {
	s.numbers++
	number := fmt.Sprintf("02477%05d", s.numbers)
	if s.random.IntN(4) == 0 {
		number = "0240000001"
	}
	m.otp, m.to[international(number)] = true, true
	m.path, m.text = "/sms-api/otp/send", "Code "+otp.Placeholder+" for "+m.id
	m.body = map[string]any{"phoneNumber": number, "senderId": m.from.sender, "message": m.text, "length": 6, "expiry": otp.MostExpiry.Minutes()}
}

// ask makes the request.
func (m *send) ask(n *App) {
	method, body := http.MethodGet, ""
	if m.body != nil {
		text, err := json.Marshal(m.body)
		if err != nil {
			panic(err)
		}
		method, body = http.MethodPost, string(text)
	}
	var header []string
	if m.key != "" {
		header = []string{"Idempotency-Key", m.key}
	}
	answer := call(n, m.from.key, method, m.path, body, header...)
	var envelope struct {
		Message string `json:"message"`
		Data    struct {
			Campaign   string `json:"campaignId"`
			Recipients int    `json:"recipients"`
			Invalid    int    `json:"invalid"`
			Excluded   int    `json:"excluded"`
			Cost       int64  `json:"smsCost"`
			OTP        struct {
				Request string `json:"requestId"`
			} `json:"otp"`
		} `json:"data"`
	}
	_ = json.Unmarshal(answer.Body.Bytes(), &envelope)
	d := envelope.Data
	m.status, m.message, m.campaign, m.cost = answer.Code, envelope.Message, d.Campaign+d.OTP.Request, d.Cost
	if m.status == http.StatusOK && !m.otp && (d.Recipients != len(m.to) || d.Invalid != m.invalid || d.Excluded != m.excluded) {
		m.message = fmt.Sprintf("%d recipients, %d invalid, %d excluded; want %d, %d, %d", d.Recipients, d.Invalid, d.Excluded, len(m.to), m.invalid, m.excluded)
		m.status = 0
	}
}

// turn draws the faults of the next round.
func (s *texting) turn() {
	var next weather
	switch s.rounds % 4 {
	case 0:
		if s.rounds%8 == 4 {
			next.database = databaseFaults[s.rounds/8%len(databaseFaults)]
		}
	case 1, 2:
		next.provider = s.nextTextFault()
	case 3:
		next.provider = s.nextTextFault()
		next.database = databaseFaults[s.random.IntN(len(databaseFaults))]
	}
	s.blow(next)
}

func (s *texting) nextTextFault() sim.FaultKind {
	s.storms++
	return textFaults[s.storms%len(textFaults)].Kind
}

// textFaults are the message centre's faults. Faults that end a connection are rare, because the client waits longer before each
// further try, by the machine's clock.
var textFaults = []sim.Fault{
	{Kind: sim.Throttle, Every: 3, Count: 20}, {Kind: sim.QueueFull, Every: 5, Count: 15}, {Kind: sim.RefuseOutright, Every: 2, Count: 500},
	{Kind: sim.AnswerLost, Every: 50, Count: 1}, {Kind: sim.RequestLost, Every: 10, Count: 2}, {Kind: sim.Outage, Every: 30, Count: 1},
	{Kind: sim.ErrorBefore, Every: 7, Count: 30}, {Kind: sim.ErrorAfter, Every: 7, Count: 30}, {Kind: sim.Malformed, Every: 60, Count: 1},
	{Kind: sim.Silent, Every: 5, Count: 4}, {Kind: sim.Unbind, Every: 50, Count: 1},
	{Kind: sim.CallbackEarly, Count: 5_000}, {Kind: sim.CallbackDuplicate, Count: 5_000}, {Kind: sim.CallbackLate, Count: 5_000, Delay: 40 * time.Second},
	{Kind: sim.CallbackMissing, Every: 3, Count: 500}, {Kind: sim.CallbackStale, Every: 2, Count: 500}, {Kind: sim.FailLater, Every: 3, Count: 500},
	{Kind: sim.OddReceipt, Count: 5_000},
}

// blow injects faults at the message centre and the database.
func (s *texting) blow(next weather) {
	s.world.blow(weather{database: next.database}, 0)
	s.weather = next
	for _, f := range textFaults {
		if f.Kind == next.provider {
			f.Provider = smsc.Name
			if err := s.sim.Inject(f); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// round is one period with the same faults. Customers send requests at the same time, an operator may stop a campaign, and a node
// may stop. Then time passes until every message is sent or given up.
func (s *texting) round() {
	s.rounds++
	s.keyed = slices.DeleteFunc(s.keyed, func(m *send) bool { return s.clock.Since(m.at) > keyLasts })
	sends := make([]*send, textsAtOnce)
	for i := range sends {
		if sends[i] = s.draw(i); len(s.keyed) > 0 && s.random.IntN(8) == 0 {
			sends[i] = s.again()
		}
	}
	vanishing := s.vanish(sends)
	var group sync.WaitGroup
	for _, m := range sends {
		node := s.node()
		group.Go(func() { m.ask(node) })
	}
	group.Go(vanishing)
	s.await(&group)
	s.asked += len(sends)
	for _, m := range sends {
		s.keep(m)
	}
	s.stop(sends)
	if s.rounds%textRoundsBetweenRestarts == 0 {
		before := s.weather
		s.calm()
		still := s.passing()
		s.restart()
		still()
		s.blow(before)
	}
	for range 40 { // the faults last while messages are sent
		if s.still() && s.undelivered() == 0 || s.weather.provider == sim.Silent && len(s.sim.Faults()) == 0 {
			break
		}
		s.wait(250 * time.Millisecond)
	}
	cut := s.weather.provider == sim.Silent
	s.calm()
	if cut { // clients without an answer get an error
		s.sim.Centre.Disconnect()
	}
	s.deliver()
	s.enter(sends)
	s.change()
	for _, step := range []time.Duration{3 * time.Second, 5 * time.Second, 10 * time.Second} {
		s.rest()
		s.advance(step)
	}
	s.rest()
}

// keyLasts is how long the test repeats an Idempotency-Key. A key is valid for a day.
const keyLasts = 12 * time.Hour

// again repeats an earlier request, as a client does after a lost answer.
func (s *texting) again() *send {
	first := s.keyed[s.random.IntN(len(s.keyed))]
	m := *first
	m.first, m.weather = first, s.weather.name()
	return &m
}

// vanish makes a group that one of the requests uses, and returns a function that deletes the group while the request runs.
func (s *texting) vanish(sends []*send) func() {
	m := sends[s.random.IntN(len(sends))]
	if m.otp || m.body == nil || m.wrong != "" || m.first != nil || m.key != "" || s.weather.database != db.FaultNone || s.random.IntN(3) > 0 {
		return func() {}
	}
	group, node := s.addGroup(m.from, 30), s.node()
	m.join(group)
	m.exclude()
	all, _ := m.body["group_id_list"].([]string)
	m.body["group_id_list"], m.vanishes = append(slices.Clone(all), group), true
	delete(m.from.groups, group)
	return func() {
		if err := node.contacts.DeleteGroup(context.Background(), m.from.id, group); err != nil {
			s.t.Errorf("delete a group: %v", err)
		}
	}
}
