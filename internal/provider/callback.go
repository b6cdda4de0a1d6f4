package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/makola/makola/internal/config"
)

// CallbackPath is where the callbacks of a rail arrive, below the public URL:
// /callbacks/{name}/{token}. The token is keyed for the rail and its mode, so
// that it cannot be guessed and one provider's does not open another's. The code that
// sends a request to the rail and the code that answers the callback ask here.
func CallbackPath(secret config.Secret, r Rail) string {
	mac := hmac.New(sha256.New, secret.Derive("callbacks"))
	mac.Write([]byte(r.Mode + "/" + r.Name))
	return "/callbacks/" + r.Name + "/" + hex.EncodeToString(mac.Sum(nil)[:16])
}
