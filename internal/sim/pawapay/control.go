package pawapay

import (
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// Settings are the settings of an account in pawaPay's dashboard, as the control interface reads them.
type Settings struct {
	CallbackURL   *string `json:"callback_url,omitempty"`   // address of callbacks; empty: no callbacks are sent
	RejectRepeats *bool   `json:"reject_repeats,omitempty"` // whether a used id is rejected instead of ignored
}

// controls are the routes of the dashboard.
func (p *pawapay) controls() map[string]func(*http.Request) (any, error) {
	view := func(*http.Request) (any, error) {
		o := p.setting()
		return Settings{&o.CallbackURL, &o.RejectRepeats}, nil
	}
	return map[string]func(*http.Request) (any, error){
		"GET /sim/v1/pawapay": view,
		"POST /sim/v1/pawapay": func(r *http.Request) (any, error) {
			var s Settings
			if err := sim.Decode(r, &s); err != nil {
				return nil, err
			}
			if err := sim.CheckURL("callback_url", s.CallbackURL); err != nil {
				return nil, err
			}
			p.mu.Lock()
			if s.CallbackURL != nil {
				p.settings.CallbackURL = *s.CallbackURL
			}
			if s.RejectRepeats != nil {
				p.settings.RejectRepeats = *s.RejectRepeats
			}
			p.mu.Unlock()
			return view(r)
		},
	}
}
