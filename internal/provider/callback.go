package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/makola/makola/internal/config"
)

// CallbackPath returns the path of a rail's callbacks below the public URL: /callbacks/{name}/{token}. The token is
// an HMAC of the rail and its mode. So it cannot be guessed, and a provider's token is not valid for another
// provider. The code that submits requests and the code that receives callbacks both call this function.
func CallbackPath(secret config.Secret, r Rail) string {
	mac := hmac.New(sha256.New, secret.Derive("callbacks"))
	mac.Write([]byte(r.Mode + "/" + r.Name))
	return "/callbacks/" + r.Name + "/" + hex.EncodeToString(mac.Sum(nil)[:16])
}
