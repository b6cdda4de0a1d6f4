package app

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/sim/moolre"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/pawapay"
	"github.com/makola/makola/internal/sim/paystack"
)

// weather has the faults of one round: at most one fault at the providers and one at the database, so that an outcome can be
// attributed to its fault.
type weather struct {
	provider    sim.FaultKind // empty: nothing
	unreachable bool          // providers refuse connections
	database    db.Fault
}

func (w weather) fair() bool { return w == weather{} }

// name returns the name of the faults in the coverage table, the provider's fault first.
func (w weather) name() string {
	switch {
	case w.unreachable:
		return unreachable
	case w.provider != "":
		return string(w.provider)
	case w.database == db.FaultBefore:
		return "database_lost_before"
	case w.database == db.FaultAfter:
		return "database_lost_after"
	case w.database == db.FaultConflict:
		return "database_conflict"
	}
	return "fair"
}

// unreachable is the name of the fault in which no byte reaches a provider.
const unreachable = "unreachable"

// simFaults are the providers' faults of the simulation. Process tests cover slow answers, because these need real time.
var simFaults = []sim.FaultKind{
	sim.AnswerLost, sim.RequestLost, sim.ErrorBefore, sim.ErrorAfter, sim.Malformed, sim.Outage, sim.Throttle, sim.Unauthorized, sim.Forbidden,
	sim.CallbackDuplicate, sim.CallbackEarly, sim.CallbackLate, sim.CallbackMissing, sim.CallbackForged, sim.CallbackStale,
	sim.Reverse, sim.FailLater, sim.RefuseOutright, sim.Stuck, sim.StatusNotFound, sim.StatusWrongAmount, sim.OffersChange,
	sim.RefuseAfter, sim.StatusLag, sim.StatusAnswer, sim.StatusOther, refusedOpen,
}

// refusedOpen is the fault in which Hubtel refuses a collection clearly, prompts its payer and sends no callback.
const refusedOpen sim.FaultKind = "refused_open"

// lag is how long a slow provider reports an accepted payment as unknown. It is shorter than the provider's VisibleAfter.
const lag = 40 * time.Second

var databaseFaults = []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}

// changeWeather draws the round's faults. The providers' faults take turns, so that each occurs.
func (w *world) changeWeather() {
	var next weather
	switch w.rounds % 5 {
	case 0: // no fault of the database in two of three rounds
		next.unreachable = w.rounds/5%3 == 2
	case 1, 2:
		next.provider = w.nextFault()
	case 3:
		next.database = databaseFaults[w.rounds/5%len(databaseFaults)]
	case 4:
		next.provider = w.nextFault()
		next.database = databaseFaults[w.random.IntN(len(databaseFaults))]
	}
	w.blow(next, 1+w.random.IntN(callersAtOnce/2))
}

// blow injects faults. The providers' fault affects a number of requests.
func (w *world) blow(next weather, requests int) {
	w.calm()
	w.weather = next
	w.takenBack = w.takenBack || next.provider == sim.Reverse
	if next.unreachable {
		w.door.shut()
	}
	for _, f := range w.faultsOf(next.provider) {
		f.Count = requests
		if err := w.sim.Inject(f); err != nil {
			w.t.Fatal(err)
		}
	}
	if fault := next.database; fault != db.FaultNone {
		dice := rand.New(rand.NewPCG(w.random.Uint64(), 1))
		var broken atomic.Int64
		w.faults.Decide(func(db.Boundary) db.Fault {
			if dice.IntN(6) != 0 || broken.Add(1) > 12 {
				return db.FaultNone
			}
			return fault
		})
	}
}

// The useful Answers of each provider.
var (
	refusalAnswers = map[string][]string{mtn.Name: mtn.RefusalAnswers(), hubtel.Name: hubtel.RefusalAnswers(), paystack.Name: paystack.RefusalAnswers(),
		pawapay.Name: pawapay.RefusalAnswers(), moolre.Name: moolre.RefusalAnswers()}
	statusAnswers = map[string][]string{mtn.Name: mtn.StatusAnswers(), hubtel.Name: hubtel.StatusAnswers(), paystack.Name: paystack.StatusAnswers(),
		pawapay.Name: pawapay.StatusAnswers(), moolre.Name: moolre.StatusAnswers()}
)

// faultsOf returns the faults of a kind. If the kind makes providers contradict themselves, each provider has a fault with one
// of its own answers.
func (w *world) faultsOf(kind sim.FaultKind) (list []sim.Fault) {
	switch kind {
	case "":
	case sim.RefuseAfter, sim.StatusAnswer:
		for _, provider := range simRails {
			answers := refusalAnswers[provider]
			if kind == sim.StatusAnswer {
				answers = statusAnswers[provider]
			}
			list = append(list, sim.Fault{Kind: kind, Provider: provider, Answer: answers[w.random.IntN(len(answers))]})
		}
	case refusedOpen:
		for _, kind := range []sim.FaultKind{sim.RefuseAfter, sim.CallbackMissing} {
			list = append(list, sim.Fault{Kind: kind, Provider: hubtel.Name, Operation: sim.OpCollect, Answer: map[sim.FaultKind]string{sim.RefuseAfter: "4103"}[kind]})
		}
	case sim.StatusLag:
		list = append(list, sim.Fault{Kind: kind, Delay: lag})
	default:
		list = append(list, sim.Fault{Kind: kind})
	}
	return list
}

func (w *world) nextFault() sim.FaultKind {
	w.storms++
	return simFaults[w.storms%len(simFaults)]
}

func (w *world) calm() {
	w.weather = weather{}
	w.faults.Decide(nil)
	w.sim.ClearFaults()
	w.door.open()
}
