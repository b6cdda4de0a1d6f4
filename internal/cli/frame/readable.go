package frame

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// ReadableFlag refuses a credential, or a URL with a password, on the command line.
func ReadableFlag(flags []*kong.Flag) error {
	refuse := func(text string) error { return problem.New(problem.Invalid, "password_readable", text) }
	for _, f := range flags {
		if f.Name == "database" && hasPassword(f.Target.String()) {
			return refuse("The password in --database can be read in the list of processes: give the URL in MAKOLA_DATABASE, or the password in PGPASSWORD or a password file")
		}
		value, is := f.Target.Interface().(config.Credential)
		switch {
		case !is:
		case f.Name != "proxy":
			return refuse(fmt.Sprintf("The secret in --%s is visible in the list of processes. Set it in %s", f.Name, f.Envs[0]))
		case hasPassword(value.Reveal()):
			return refuse("The password in --proxy can be read in the list of processes: give the URL in MAKOLA_PROXY")
		}
	}
	return nil
}

// hasPassword reports whether a URL, or a list of connection settings, contains a password.
func hasPassword(database string) bool {
	if u, err := url.Parse(database); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return true
		}
	}
	return strings.Contains(database, "password=")
}
