package paystack

import (
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// Settings are the settings of a business in Paystack's dashboard, as members of the control interface.
type Settings struct {
	OTP      *bool   `json:"otp,omitempty"`       // whether transfers wait for an OTP
	EventURL *string `json:"event_url,omitempty"` // where events go; empty: nowhere
}

// controls are the routes of the dashboard.
func (p *paystack) controls() map[string]func(*http.Request) (any, error) {
	view := func(*http.Request) (any, error) {
		otp, eventURL := p.setting()
		return Settings{&otp, &eventURL}, nil
	}
	return map[string]func(*http.Request) (any, error){
		"GET /sim/v1/paystack": view,
		"POST /sim/v1/paystack": func(r *http.Request) (any, error) {
			var s Settings
			if err := sim.Decode(r, &s); err != nil {
				return nil, err
			}
			if err := sim.CheckURL("event_url", s.EventURL); err != nil {
				return nil, err
			}
			p.set(s.OTP, s.EventURL)
			return view(r)
		},
	}
}

// disableOTP, disableOTPFinalize and enableOTP switch the OTPs of transfers as Paystack's own interface does.
func (p *paystack) disableOTP(c *call) {
	c.give(http.StatusOK, "OTP has been sent to mobile number ending with 4321", nil)
}

func (p *paystack) disableOTPFinalize(c *call) {
	var b struct {
		OTP string `json:"otp"`
	}
	if !c.body(&b) {
		return
	}
	if b.OTP != goodOTP {
		c.refuse(http.StatusBadRequest, "OTP is invalid", "", "")
		return
	}
	p.set(new(bool), nil)
	c.give(http.StatusOK, "OTP requirement for transfers has been disabled", nil)
}

func (p *paystack) enableOTP(c *call) {
	on := true
	p.set(&on, nil)
	c.give(http.StatusOK, "OTP requirement for transfers has been enabled", nil)
}
