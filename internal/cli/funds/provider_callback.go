package funds

import (
	"strings"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

type providersCallback struct {
	frame.Common
	Provider  string `arg:"" help:"Name of the provider, such as paystack."`
	Mode      string `name:"mode" enum:"test,live" default:"live" help:"test or live money."`
	PublicURL string `name:"public-url" env:"MAKOLA_PUBLIC_URL" placeholder:"URL" help:"Public URL of the server. Without it the address is a path."`
}

type callbackAddress struct{ provider, mode, address string }

// Run prints the address.
func (c *providersCallback) Run(e *frame.Env) error {
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		var bad problem.Fields
		o.Routes().CheckProvider(&bad, c.Provider)
		if err := bad.Err(); err != nil {
			return err
		}
		path := provider.CallbackPath(secret, provider.Rail{Name: c.Provider, Mode: c.Mode})
		return frame.PrintOne(e.Stdout, c.Output, []frame.Column[callbackAddress]{
			{Name: "provider", Value: func(a callbackAddress) any { return a.provider }},
			{Name: "mode", Value: func(a callbackAddress) any { return a.mode }},
			{Name: "address", Value: func(a callbackAddress) any { return a.address }},
		}, callbackAddress{c.Provider, c.Mode, strings.TrimRight(c.PublicURL, "/") + path})
	})
}
