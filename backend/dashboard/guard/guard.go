// Package guard decides who may ask the dashboard: the owner's own browser on the
// loopback address, let in by a launch link, and nothing that a delegated job, another
// site or a stranger's DNS sends. What is asked is the dashboard's to answer.
package guard

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/dashboard/exchange"
)

// CookieName is the session cookie's name (seed 5.1).
const CookieName = "bridge_ui"

// Kind says what a route is, and so what a request for it needs.
type Kind int

// The kinds.
const (
	Read     Kind = iota // JSON, changes nothing
	Stream               // server-sent events
	Mutation             // changes something
	Page                 // the page's files
	Entry                // the launch link: the only way in without a cookie
)

// maxLaunchFailures bounds wrong keys per minute: ours, far above what a person
// mistypes and far below what guessing would need.
const maxLaunchFailures = 20

// Guard is the only place that decides who may ask: Host, cookie, origin,
// mutation header, content type and launch keys (seed 5.1, 5.2; rows AUT-01,
// AUT-02, CHT-13).
type Guard struct {
	secret   func() (config.Secret, error)
	tickets  *Tickets
	failures *Window // wrong launch keys
	// inside names the delegated job that a connection comes from the inside of; nil
	// where there are no jobs.
	inside func(net.Conn) (string, error)
}

// Options says what a Guard works with. All fields are required unless the comment says
// otherwise.
type Options struct {
	// Secret gives the launch secret. It is asked at every request.
	Secret func() (config.Secret, error)
	// Tickets are the one-time keys that open the page beside the secret.
	Tickets *Tickets
	// Inside names the delegated job that a connection comes from the inside of, "" for
	// none; nil where there are none.
	Inside func(net.Conn) (job string, err error)
	Now    func() time.Time
}

// New returns a guard that lets nobody in yet.
func New(opts Options) *Guard {
	return &Guard{
		secret: opts.Secret, tickets: opts.Tickets, inside: opts.Inside,
		failures: NewWindow(opts.Now, maxLaunchFailures, time.Minute),
	}
}

// insideKey is the key of an error in a request's context: why nothing that comes on
// its connection is answered.
type insideKey struct{}

// ConnContext looks at a new connection. A delegated job runs as its owner and can
// read whatever opens the page, so whose the connection is decides (JOB-11).
func (g *Guard) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if g.inside == nil {
		return ctx
	}
	name, err := g.inside(conn)
	if err == nil && name != "" {
		err = forbidden(fmt.Sprintf("this process is part of %s, a delegated job: the dashboard is for the owner alone", name))
	}
	if err == nil {
		return ctx
	}
	return context.WithValue(ctx, insideKey{}, err)
}

// Caller refuses what comes from inside a job.
func (g *Guard) Caller(r *http.Request) error {
	err, _ := r.Context().Value(insideKey{}).(error)
	return err
}

// Host refuses every Host but the loopback names with the very port on which
// the request came in: a name that a stranger's DNS points here is not ours.
func (g *Guard) Host(r *http.Request) error {
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

// Cookie refuses a request that no launch link was opened for.
func (g *Guard) Cookie(r *http.Request) error {
	want, err := g.CookieValue()
	if err != nil {
		return err
	}
	// Cookies know no ports: another server on this host may have set one of
	// the same name beside ours.
	for _, cookie := range r.CookiesNamed(CookieName) {
		if subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(want)) == 1 {
			return nil
		}
	}
	return forbidden("this browser has no access yet: open the link that `bridge open` or `bridge url` gives")
}

// CookieValue derives the cookie from the secret, so that a stolen cookie does
// not reveal it.
func (g *Guard) CookieValue() (string, error) {
	secret, err := g.secret()
	if err != nil {
		return "", bridge.WithCause(bridge.Internal, err, "the dashboard's secret cannot be read")
	}
	if secret == "" { // an empty key would make the cookie public knowledge
		return "", bridge.Errorf(bridge.Internal, "the dashboard has no secret")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("cookie " + CookieName))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Request applies what the route's kind asks for beyond Host and cookie.
func (g *Guard) Request(k Kind, r *http.Request) error {
	if k == Page || k == Entry {
		return nil
	}
	if err := sameOrigin(r); err != nil {
		return err
	}
	if k != Mutation {
		return nil
	}
	if values := r.Header.Values("x-bridge"); len(values) != 1 || values[0] != "1" {
		return forbidden("the header x-bridge: 1 is missing")
	}
	if r.Method == http.MethodDelete && r.ContentLength == 0 && len(r.Header.Values("Content-Type")) == 0 {
		return nil // it has no body whose type could be told
	}
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || contentType != "application/json" {
		return exchange.Refusal{Status: http.StatusUnsupportedMediaType, Sentence: "the Content-Type must be application/json"}
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
func (g *Guard) admit(r *http.Request) (*http.Cookie, error) {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "", "document":
	default: // a picture or frame of another page must not spend our patience
		return nil, forbidden("the launch link must be opened as a page")
	}
	value, err := g.CookieValue()
	if err != nil {
		return nil, err
	}
	if g.failures.Full() {
		return nil, bridge.Errorf(bridge.Busy, "too many wrong launch keys: try again in a minute")
	}
	secret, err := g.secret()
	if err != nil {
		return nil, bridge.WithCause(bridge.Internal, err, "the dashboard's secret cannot be read")
	}
	key := r.URL.Query().Get("key")
	if !equalText(key, string(secret)) && !g.tickets.redeem(key) {
		g.failures.Take()
		return nil, forbidden("the launch link is wrong, used or too old: `bridge open` makes a new one")
	}
	return &http.Cookie{Name: CookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}, nil //nolint:gosec // plain HTTP on loopback: a Secure cookie would not come back
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

// SecurityHeaders prepares every answer, errors included.
func SecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
