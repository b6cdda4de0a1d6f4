package pawapay

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/provider"
)

// The headers of a signed callback (RFC 9421), with the name that pawaPay gives its signature.
const (
	signatureName   = "sig-pp"
	inputHeader     = "Signature-Input"
	signatureHeader = "Signature"
	digestHeader    = "Content-Digest"
)

// freshKeys is how long pawaPay's keys are used before they are requested again. It also limits how often an unknown key
// causes a request, because anybody can name an unknown key.
const freshKeys = time.Minute

// Errors of callbacks that are refused.
var (
	errUnsigned  = errors.New("callback is not signed")
	errSignature = errors.New("callback is not signed with a key of pawaPay")
	errDigest    = errors.New("digest of callback does not match its body")
)

// keys are pawaPay's public keys, by id.
type keys struct {
	mu    sync.Mutex
	byID  map[string]*ecdsa.PublicKey
	asked time.Time
}

// ParseCallback returns the payment of a callback. If the callback has a signature, it must be pawaPay's. A callback without a
// signature is a hint, as for other providers, unless the account expects signatures. For a callback about a payment that is not
// ours, the result has neither a hint nor an error. pawaPay may repeat a refused callback.
func (a *Adapter) ParseCallback(r provider.CallbackRequest) ([]provider.Hint, error) {
	switch err := a.verify(r); {
	case errors.Is(err, errUnsigned) && !a.account.SignedCallbacks:
	case err != nil:
		return nil, err
	}
	var c reply
	if err := json.Unmarshal(r.Body, &c); err != nil {
		return nil, err
	}
	for _, text := range []string{c.RefundID, c.PayoutID, c.DepositID} { // a refund names its deposit as well
		if id, err := uuid.Parse(text); err == nil {
			return []provider.Hint{{ProviderReference: id.String()}}, nil
		}
	}
	return nil, nil
}

// covered is the list of components in a Signature-Input, with its parameters.
var covered = regexp.MustCompile(`^\s*` + signatureName + `=(\(([^()]{1,400})\)([^()]{0,400}))$`)

// keyID returns the id of the key in the parameters.
var keyID = regexp.MustCompile(`;keyid="([^"]{1,200})"`)

// verify checks the signature of a callback and the digest of its body.
func (a *Adapter) verify(r provider.CallbackRequest) error {
	if r.Header.Get(inputHeader) == "" && r.Header.Get(signatureHeader) == "" {
		return errUnsigned
	}
	input := covered.FindStringSubmatch(r.Header.Get(inputHeader))
	if input == nil {
		return errSignature
	}
	text, signed := strings.CutPrefix(strings.TrimSpace(r.Header.Get(signatureHeader)), signatureName+"=:")
	given, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, ":"))
	id := keyID.FindStringSubmatch(input[3])
	base, whole := signatureBase(r, strings.Fields(input[2]), input[1])
	if !signed || err != nil || id == nil || !whole {
		return errSignature
	}
	if !digestFits(r.Header.Get(digestHeader), r.Body) {
		return errDigest
	}
	key := a.key(id[1])
	hash := sha256.Sum256([]byte(base))
	if key == nil || !signedBy(key, hash[:], given) {
		return errSignature
	}
	return nil
}

// signatureBase returns the signed text. whole is false if a component is missing, or if the signature does not cover the digest
// of the body.
func signatureBase(r provider.CallbackRequest, components []string, parameters string) (base string, whole bool) {
	var lines strings.Builder
	for _, quoted := range components {
		name := strings.Trim(quoted, `"`)
		value := ""
		switch name {
		case "@method":
			value = r.Method
		case "@authority":
			value = strings.ToLower(r.Host)
		case "@path":
			value = r.Path
		case "content-length":
			value = strconv.Itoa(len(r.Body))
		default:
			value = strings.TrimSpace(strings.Join(r.Header.Values(http.CanonicalHeaderKey(name)), ", "))
		}
		if value == "" || quoted != `"`+name+`"` {
			return "", false
		}
		whole = whole || name == "content-digest"
		lines.WriteString(quoted + ": " + value + "\n")
	}
	return lines.String() + `"@signature-params": ` + parameters, whole
}

// digestFits reports whether a Content-Digest matches the body.
func digestFits(header string, body []byte) bool {
	algorithm, text, _ := strings.Cut(header, "=:")
	given, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, ":"))
	if err != nil {
		return false
	}
	switch strings.TrimSpace(algorithm) {
	case "sha-512":
		sum := sha512.Sum512(body)
		return subtle.ConstantTimeCompare(given, sum[:]) == 1
	case "sha-256":
		sum := sha256.Sum256(body)
		return subtle.ConstantTimeCompare(given, sum[:]) == 1
	}
	return false
}

// signedBy verifies a signature in the form of pawaPay's example (ASN.1), or in the form of RFC 9421 (two numbers of 32
// octets).
func signedBy(key *ecdsa.PublicKey, hash, signature []byte) bool {
	if ecdsa.VerifyASN1(key, hash, signature) {
		return true
	}
	const size = 32
	if len(signature) != 2*size {
		return false
	}
	r, s := new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])
	return ecdsa.Verify(key, hash, r, s)
}

// key returns pawaPay's public key with an id, or nil. It requests the keys from pawaPay at most once in freshKeys.
func (a *Adapter) key(id string) *ecdsa.PublicKey {
	a.keys.mu.Lock()
	defer a.keys.mu.Unlock()
	if known := a.keys.byID[id]; known != nil || !a.keys.asked.IsZero() && time.Since(a.keys.asked) < freshKeys {
		return known
	}
	a.keys.asked = time.Now()
	if found := publicKeys(a.get(context.Background(), "public_keys", "", "/v2/public-key/http")); found != nil {
		a.keys.byID = found
	}
	return a.keys.byID[id]
}

// mostKeys is the maximum number of stored keys.
const mostKeys = 16

// publicKeys reads the list of public keys. It returns nil if the list cannot be read.
func publicKeys(a provider.Answer) map[string]*ecdsa.PublicKey {
	var list []struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	if a.Err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &list) != nil {
		return nil
	}
	found := map[string]*ecdsa.PublicKey{}
	for _, each := range list[:min(len(list), mostKeys)] {
		block, _ := pem.Decode([]byte(each.Key))
		if block == nil {
			continue
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if key, is := parsed.(*ecdsa.PublicKey); err == nil && is {
			found[each.ID] = key
		}
	}
	return found
}
