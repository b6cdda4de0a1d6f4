package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// DeviceLasts is how long a browser counts as known for a person after a sign-in.
const DeviceLasts = 180 * 24 * time.Hour

// device is a browser in which a person signed in.
type device struct{ person, nonce string }

// NewDevice returns a token that proves that the person of a session has signed in with this browser before. The
// token does not sign anybody in. It gives the browser its own sign-in tries, and priority over unknown clients.
// Without a master key the token is empty.
func (i *Identity) NewDevice(ctx context.Context, session string) (string, error) {
	if i.devices == nil {
		return "", nil
	}
	v, err := i.Visit(ctx, session, false)
	if err != nil {
		return "", err
	}
	ends := strconv.FormatInt(i.clock.Now().Add(DeviceLasts).Unix(), 10)
	text := v.Person.ID + "." + rand.Text() + "." + ends
	return text + "." + i.signDevice(text), nil
}

// device reads the token of a browser. For an invalid token the person is empty.
func (i *Identity) device(text string) device {
	at := strings.LastIndexByte(text, '.')
	if i.devices == nil || at < 0 || len(text) > 200 || !hmac.Equal([]byte(i.signDevice(text[:at])), []byte(text[at+1:])) {
		return device{}
	}
	parts := strings.Split(text[:at], ".")
	if len(parts) != 3 {
		return device{}
	}
	ends, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || i.clock.Now().Unix() >= ends {
		return device{}
	}
	return device{parts[0], parts[1]}
}

func (i *Identity) signDevice(text string) string {
	mac := hmac.New(sha256.New, i.devices)
	mac.Write([]byte(text)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
