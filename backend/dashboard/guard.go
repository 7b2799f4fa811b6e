package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/config"
)

// cookieName is the session cookie's name (seed 5.1).
const cookieName = "bridge_ui"

// maxLaunchFailures bounds wrong keys per minute: ours, far above what a person
// mistypes and far below what guessing would need.
const maxLaunchFailures = 20

// guard is the only place that decides who may ask: Host, cookie, origin,
// mutation header, content type and launch keys (seed 5.1, 5.2; rows AUT-01,
// AUT-02, CHT-13).
type guard struct {
	secret   func() (config.Secret, error)
	tickets  *Tickets
	failures *window // wrong launch keys
}

// host refuses every Host but the loopback names with the very port on which
// the request came in: a name that a stranger's DNS points here is not ours.
func (g *guard) host(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return forbidden("the request did not come over a network connection")
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return forbidden("the dashboard answers on the loopback address only")
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return forbidden("the dashboard answers on the loopback address only")
	}
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	if port == "80" { // browsers leave the default port out
		hosts = append(hosts, "127.0.0.1", "localhost", "[::1]")
	}
	if !slices.Contains(hosts, r.Host) {
		return forbidden("the dashboard answers to 127.0.0.1 and localhost only")
	}
	return nil
}

// cookie refuses a request that no launch link was opened for.
func (g *guard) cookie(r *http.Request) error {
	want, err := g.cookieValue()
	if err != nil {
		return err
	}
	// Cookies know no ports: another server on this host may have set one of
	// the same name beside ours.
	for _, cookie := range r.CookiesNamed(cookieName) {
		if subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(want)) == 1 {
			return nil
		}
	}
	return forbidden("this browser has no access yet: open the link that `bridge open` or `bridge url` gives")
}

// cookieValue derives the cookie from the secret, so that a stolen cookie does
// not reveal it.
func (g *guard) cookieValue() (string, error) {
	secret, err := g.secret()
	if err != nil {
		return "", bridge.WithCause(bridge.Internal, err, "the dashboard's secret cannot be read")
	}
	if secret == "" { // an empty key would make the cookie public knowledge
		return "", bridge.Errorf(bridge.Internal, "the dashboard has no secret")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("cookie " + cookieName))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// request applies what the route's kind asks for beyond Host and cookie.
func (g *guard) request(k kind, r *http.Request) error {
	if k == page || k == entry {
		return nil
	}
	if err := sameOrigin(r); err != nil {
		return err
	}
	if k != mutation {
		return nil
	}
	if values := r.Header.Values("x-bridge"); len(values) != 1 || values[0] != "1" {
		return forbidden("the header x-bridge: 1 is missing")
	}
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || contentType != "application/json" {
		return refusal{http.StatusUnsupportedMediaType, "the Content-Type must be application/json"}
	}
	return nil
}

// sameOrigin refuses what another site's page sent. A page on another port of
// this host is the same site, so its requests carry even a Strict cookie: the
// browser's own words about the sender tell it apart.
func sameOrigin(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			return forbidden("the request comes from another origin")
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	default:
		return forbidden("the request comes from another site")
	}
}

// admit checks a launch key and returns the cookie that it buys. A ticket is
// used up by it.
func (g *guard) admit(r *http.Request) (*http.Cookie, error) {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "", "document":
	default: // a picture or frame of another page must not spend our patience
		return nil, forbidden("the launch link must be opened as a page")
	}
	value, err := g.cookieValue()
	if err != nil {
		return nil, err
	}
	if g.failures.full() {
		return nil, bridge.Errorf(bridge.Busy, "too many wrong launch keys: try again in a minute")
	}
	secret, err := g.secret()
	if err != nil {
		return nil, bridge.WithCause(bridge.Internal, err, "the dashboard's secret cannot be read")
	}
	key := r.URL.Query().Get("key")
	if !equalText(key, string(secret)) && !g.tickets.redeem(key) {
		g.failures.take()
		return nil, forbidden("the launch link is wrong, used or too old: `bridge open` makes a new one")
	}
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}, nil //nolint:gosec // plain HTTP on loopback: a Secure cookie would not come back
}

// equalText compares in a time that tells neither content nor length.
func equalText(a, b string) bool {
	left, right := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(left[:], right[:]) == 1
}

func forbidden(sentence string) error { return bridge.Errorf(bridge.Denied, "%s", sentence) }

// contentPolicy lets the page run its own files only. Styles may be inline:
// Svelte sets them on elements.
const contentPolicy = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// setSecurityHeaders prepares every answer, errors included.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// ticketLife is how long a one-time ticket opens the dashboard (AUT-04): long
// enough for a browser to start.
const ticketLife = 30 * time.Second
