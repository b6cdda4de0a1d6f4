package sample

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/makola/makola/internal/money"
)

// kind is a kind of request.
type kind int

const (
	collection kind = iota
	walletPayout
	bankPayout
	airtime
	data
	kinds
)

// shop is one of the two tenants, with its habits.
type shop struct {
	name, prefix string // prefix of its references
	share        float64
	mix          [kinds]float64          // shares of the kinds of its payments
	typical      [kinds][2]money.Pesewas // the smallest and an ordinary amount
	customers    int
	contacts     int // contacts in its group
	otps         float64
	newsletter   time.Weekday
	every        int // weeks between newsletters
	texts        []string
	code         string // the text of its one-time passwords

	id, key, sender, group string
	people                 []person
	number                 int // number of the last reference
}

// person is a customer of a shop.
type person struct{ phone, network, first, last string }

// The shops. The first is the demo account of every development server.
func newShops() []*shop {
	return []*shop{
		{name: "Adom Stores", prefix: "ADM", share: 0.62, mix: [kinds]float64{62, 18, 5, 10, 5}, customers: 130, contacts: 60, otps: 4, newsletter: time.Friday, every: 1,
			typical: [kinds][2]money.Pesewas{{800, 9_500}, {2_000, 16_000}, {15_000, 60_000}, {200, 1_200}, {}},
			texts: []string{"Adom Stores: weekend offer! 10% off rice, oil and tomatoes until Sunday.", "Adom Stores: fresh bread from 6 a.m. every day. See you this weekend!",
				"Adom Stores: buy two bags of rice, get sugar free. Friday and Saturday only.", "Adom Stores: thank you for shopping with us. Pay by mobile money and skip the queue."},
			code: "Your Adom Stores code is <%otp_code%>. Do not share it."},
		{name: "Keta Crafts", prefix: "KTC", share: 0.38, mix: [kinds]float64{46, 38, 5, 7, 4}, customers: 70, contacts: 24, otps: 1.2, newsletter: time.Tuesday, every: 2,
			typical: [kinds][2]money.Pesewas{{2_500, 18_000}, {3_000, 13_000}, {10_000, 40_000}, {200, 900}, {}},
			texts:   []string{"Keta Crafts: new baskets and beads are in. Order by Friday for delivery next week.", "Keta Crafts: market day on Saturday. Bring your pieces before 9 a.m., we pay on the spot."},
			code:    "Keta Crafts: <%otp_code%> confirms your order."},
	}
}

var (
	firstNames = []string{"Ama", "Kwame", "Esi", "Kofi", "Abena", "Yaw", "Akosua", "Kojo", "Efua", "Kwesi", "Adwoa", "Nana", "Selorm", "Dzifa", "Akua", "Fiifi", "Mawuli", "Enyonam"}
	lastNames  = []string{"Mensah", "Owusu", "Boateng", "Asante", "Tetteh", "Agyemang", "Addo", "Ofori", "Quaye", "Amoah", "Darko", "Laryea", "Abdulai", "Kpodo", "Agbeko", "Ansah"}
	// networkWords are the names of networks in requests, and prefixes their number prefixes.
	networkWords = []string{"MTN", "VDF", "ATL"}
	prefixes     = map[string][]string{"MTN": {"024", "054", "055", "059"}, "VDF": {"020", "050"}, "ATL": {"027", "057", "026"}}
)

// newPerson draws a customer. The number is never a test number of the simulator.
func newPerson(random *rand.Rand) person {
	network := networkWords[0]
	switch n := random.IntN(100); {
	case n >= 86:
		network = networkWords[2]
	case n >= 64:
		network = networkWords[1]
	}
	return person{network: network, phone: fmt.Sprintf("%s%07d", pick(random, prefixes[network]), 1_000_000+random.IntN(9_000_000)),
		first: pick(random, firstNames), last: pick(random, lastNames)}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// amount draws the amount of a payment of a kind: many are small, few are large, most are whole cedis.
func (s *shop) amount(random *rand.Rand, k kind) money.Pesewas {
	least, ordinary := s.typical[k][0], s.typical[k][1]
	drawn := least + money.Pesewas(random.ExpFloat64()*float64(ordinary-least))
	drawn = min(drawn, 6*ordinary)
	if k == airtime {
		return max(100, min(drawn, 10_000)/100*100)
	}
	if random.IntN(5) > 0 {
		return max(money.Cedi, drawn/money.Cedi*money.Cedi)
	}
	return max(money.Cedi, drawn/50*50)
}
