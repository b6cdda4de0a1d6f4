package moolre

import (
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// Settings are the settings of an account, as members of the control interface.
type Settings struct {
	CallbackURL *string `json:"callback_url,omitempty"` // address of callbacks; empty: no callbacks are sent
	Confirm     *bool   `json:"confirm,omitempty"`      // whether a new payer confirms the number by a code
	Sandbox     *bool   `json:"sandbox,omitempty"`      // whether requests need only the user name
}

// controls are the routes of the settings.
func (m *moolre) controls() map[string]func(*http.Request) (any, error) {
	view := func(*http.Request) (any, error) {
		o := m.setting()
		return Settings{&o.CallbackURL, &o.Confirm, &o.Sandbox}, nil
	}
	return map[string]func(*http.Request) (any, error){
		"GET /sim/v1/moolre": view,
		"POST /sim/v1/moolre": func(r *http.Request) (any, error) {
			var s Settings
			if err := sim.Decode(r, &s); err != nil {
				return nil, err
			}
			if err := sim.CheckURL("callback_url", s.CallbackURL); err != nil {
				return nil, err
			}
			m.mu.Lock()
			if s.CallbackURL != nil {
				m.settings.CallbackURL = *s.CallbackURL
			}
			if s.Confirm != nil {
				m.settings.Confirm = *s.Confirm
			}
			if s.Sandbox != nil {
				m.settings.Sandbox = *s.Sandbox
			}
			m.mu.Unlock()
			return view(r)
		},
	}
}
