package pawapay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// callback returns the callback that pawaPay sends when a payment is final.
func (p *pawapay) callback(e sim.Entry) sim.Callback {
	b := sim.Callback{Method: http.MethodPost, URL: e.CallbackURL, Body: sim.Encode(object(e)), Header: http.Header{"Content-Type": {jsonType}}}
	if !p.setting().Unsigned {
		p.sign(&b, p.key)
	}
	return b
}

// components are the signed parts of a callback, in pawaPay's order.
const components = `("@method" "@authority" "@path" "signature-date" "content-digest" "content-type" "content-length")`

// sign signs a callback according to RFC 9421. The id of the key is always that of pawaPay's own key.
func (p *pawapay) sign(b *sim.Callback, key *ecdsa.PrivateKey) {
	u, err := url.Parse(b.URL)
	if err != nil {
		return
	}
	now := p.s.Clock().Now()
	digest := sha512.Sum512(b.Body)
	b.Header.Set("Signature-Date", now.UTC().Format("2006-01-02T15:04:05.000Z"))
	b.Header.Set("Content-Digest", "sha-512=:"+base64.StdEncoding.EncodeToString(digest[:])+":")
	parameters := fmt.Sprintf(`%s;alg="ecdsa-p256-sha256";keyid="%s";created=%d;expires=%d`, components, p.keyID(), now.Unix(), now.Unix()+60)
	base := fmt.Sprintf("\"@method\": %s\n\"@authority\": %s\n\"@path\": %s\n\"signature-date\": %s\n\"content-digest\": %s\n\"content-type\": %s\n\"content-length\": %d\n\"@signature-params\": %s",
		b.Method, strings.ToLower(u.Host), u.Path, b.Header.Get("Signature-Date"), b.Header.Get("Content-Digest"), jsonType, len(b.Body), parameters)
	hash := sha256.Sum256([]byte(base))
	signature, err := ecdsa.SignASN1(rand.Reader, key, hash[:])
	if err != nil {
		panic(err) // the key is always valid
	}
	b.Header.Set("Signature-Input", "sig-pp="+parameters)
	b.Header.Set("Signature", "sig-pp=:"+base64.StdEncoding.EncodeToString(signature)+":")
}

// forge signs a callback with another key.
func (p *pawapay) forge(b sim.Callback) sim.Callback {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the source of randomness never fails
	}
	p.sign(&b, other)
	return b
}

// publicKey is the key as in the response of pawaPay.
func (p *pawapay) publicKey() []byte {
	der, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	if err != nil {
		panic(err) // the key is always valid
	}
	return der
}

// keyID is the id of this simulator's key. Each start makes a new key.
func (p *pawapay) keyID() string {
	sum := sha256.Sum256(p.publicKey())
	return "HTTP_EC_P256_KEY:" + hex.EncodeToString(sum[:4])
}

// publicKeys answers with the keys that sign callbacks.
func (p *pawapay) publicKeys(c *call) {
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: p.publicKey()})
	c.give([]map[string]any{{"id": p.keyID(), "key": string(text)}})
}
