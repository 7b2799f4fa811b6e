package guard

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// bounceScript leads from the launch link to the page. A redirect fails: the
// browser attributes it to the site with the link and withholds the new Strict
// cookie. The script keeps the link's place in the page.
const bounceScript = `location.replace("/"+location.hash)`

const bouncePage = `<!doctype html><html lang="en" data-bridge="launch"><head><meta charset="utf-8"><title>Bridge</title></head>` +
	`<body><p><a href="/">Open Bridge</a></p><script>` + bounceScript + `</script></body></html>`

// bouncePolicy allows exactly that script.
var bouncePolicy = "default-src 'none'; script-src " + hashOf(bounceScript) + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hashOf returns the source expression of a policy for an inline text.
func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// Launch answers GET /launch with a cookie and a page that replaces itself by / (contract,
// AUT-01). It fails with Denied for a wrong key, and with Busy after too many.
func (g *Guard) Launch(w http.ResponseWriter, r *http.Request) error {
	cookie, err := g.admit(r)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	w.Header().Set("Content-Security-Policy", bouncePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(bouncePage)) // a lost client opens the link again
	return nil
}
