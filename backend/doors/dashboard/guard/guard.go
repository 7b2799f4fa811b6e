// Package guard decides which requests the dashboard accepts: those of the owner's own
// browser on the loopback address, admitted by a launch link. It refuses delegated
// jobs, other sites and foreign DNS names. The dashboard serves the accepted requests.
package guard

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/config"
)

// CookieName is the session cookie's name (seed 5.1).
const CookieName = "bridge_ui"

// Kind is the kind of a route, and so the requirements for its requests.
type Kind int

// The kinds.
const (
	Read     Kind = iota // JSON, changes nothing
	Stream               // server-sent events
	Mutation             // changes something
	Page                 // the page's files
	Entry                // the launch link, which needs no cookie
)

// maxLaunchFailures bounds wrong keys per minute. Bridge's own choice is far above
// a person's typing errors and far below the needs of guessing.
const maxLaunchFailures = 20

// Guard is the only place that admits requests. It checks the connection's process,
// Host, cookie, origin, mutation header, content type and launch keys (seed 5.1,
// 5.2; rows AUT-01, AUT-02, CHT-13, SEC-01).
type Guard struct {
	browsers browsers
	tickets  *Tickets
	failures *Window // wrong launch keys
	job      func(net.Conn) (string, error)
	user     func(net.Conn) (bool, error)
}

// Options configures a Guard. All fields are required unless the comment says
// otherwise.
type Options struct {
	// Secret returns the launch secret. It is called for every request.
	Secret func() (config.Secret, error)
	// Browsers stores the valid cookies; nil keeps them only in memory.
	Browsers BrowserStore
	// Tickets are the keys that open the page.
	Tickets *Tickets
	// Job returns the name of the delegated job at the other end of a connection,
	// or ""; nil without jobs.
	Job func(net.Conn) (name string, err error)
	// User fails if a connection belongs to another user, and reports whether the
	// system knows; nil if it never does.
	User func(net.Conn) (known bool, err error)
	Now  func() time.Time
}

// New returns a guard that admits the stored browsers.
func New(opts Options) *Guard {
	return &Guard{
		browsers: browsers{secret: opts.Secret, store: opts.Browsers, now: opts.Now},
		tickets:  opts.Tickets, job: opts.Job, user: opts.User,
		failures: NewWindow(opts.Now, maxLaunchFailures, time.Minute),
	}
}

// caller holds the known facts of the process at the other end of a connection.
type caller struct {
	isOwn bool  // the system reports a process of this user
	err   error // why the connection is refused; nil if it is accepted
}

// callerKey is the context key of a request's func() caller.
type callerKey struct{}

// ConnContext checks each new connection at its first request. A delegated job runs
// as its owner and can read the same files, so the connection's process decides
// (JOB-11).
func (g *Guard) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, sync.OnceValue(func() caller { return g.callerOf(conn) }))
}

func (g *Guard) callerOf(conn net.Conn) (c caller) {
	if g.user != nil {
		if c.isOwn, c.err = g.user(conn); c.err != nil {
			c.err = bridge.WithCause(bridge.Denied, c.err, "the dashboard is for the user who runs Bridge")
			return c
		}
	}
	if g.job == nil {
		return c
	}
	name, err := g.job(conn)
	if err == nil && name != "" {
		err = forbidden(fmt.Sprintf("this process is part of %s, a delegated job: the dashboard is for the owner alone", name))
	}
	c.err = err
	return c
}

func callerIn(r *http.Request) caller {
	if look, _ := r.Context().Value(callerKey{}).(func() caller); look != nil {
		return look()
	}
	return caller{}
}

// Caller refuses requests from inside a job or from another user. It fails with
// Denied, and with Unavailable if the connection's process is unknown. The
// connection must then be closed, so that the caller's next one is checked again.
func (g *Guard) Caller(r *http.Request) error { return callerIn(r).err }

// Host refuses every Host except the loopback names with the request's port: a
// foreign DNS name may point here.
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
		return forbidden(wrongHost(r.Host, port))
	}
	return nil
}

// wrongHost returns advice about a Host that the dashboard refuses.
func wrongHost(host, port string) string {
	name, otherPort, err := net.SplitHostPort(host)
	if err != nil {
		name, otherPort = strings.Trim(host, "[]"), "80"
	}
	if name != "localhost" && name != "127.0.0.1" && name != "::1" {
		return "the dashboard answers to 127.0.0.1 and localhost only"
	}
	return fmt.Sprintf("the dashboard is on port %s, and your browser asked for port %s: if you forward a port, forward the same number, as in `ssh -L %[1]s:127.0.0.1:%[1]s`", port, otherPort)
}

// Cookie refuses a request without a valid cookie: its browser opened no launch
// link, or its cookie has expired. It fails with Denied.
func (g *Guard) Cookie(r *http.Request) error {
	// Cookies ignore ports: another server on this host may have set one with the
	// same name.
	var values []string
	for _, cookie := range r.CookiesNamed(CookieName) {
		values = append(values, cookie.Value)
	}
	isValid, err := g.browsers.check(values[:min(len(values), maxCookies)])
	if err != nil || isValid {
		return err
	}
	return forbidden("this browser has no access yet: open the link that `bridge open` or `bridge url` gives")
}

// maxCookies bounds the cookies of this name that one request may try.
const maxCookies = 8

// NewCookie returns the value of a new cookie, for a browser that opened a launch
// link. It fails with Internal if the launch secret cannot be read.
func (g *Guard) NewCookie() (string, error) { return g.browsers.open() }

// EndCookies ends every cookie.
func (g *Guard) EndCookies() { g.browsers.forget() }

// Request checks the requirements of the route's kind beyond Host and cookie.
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
		return httpjson.Refusal{Status: http.StatusUnsupportedMediaType, Sentence: "the Content-Type must be application/json"}
	}
	return nil
}

// sameOrigin refuses requests of another site's page. A page on another port of
// this host is the same site, so its requests carry even a Strict cookie. The
// browser's Sec-Fetch headers distinguish it.
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

// admit checks a launch key, uses up a ticket, and returns a new cookie. Without a
// key it admits the browser that the owner has just requested, if the system
// reports the owner's connection.
func (g *Guard) admit(r *http.Request) (*http.Cookie, error) {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "", "document":
	default: // a picture or frame of another page must not use up the failure limit
		return nil, forbidden("the launch link must be opened as a page")
	}
	if err := g.browsers.ready(); err != nil {
		return nil, err
	}
	if g.failures.Full() {
		return nil, bridge.Errorf(bridge.Busy, "too many wrong launch keys: try again in a minute")
	}
	key := r.URL.Query().Get("key")
	if key == "" && callerIn(r).isOwn && g.tickets.redeemExpected() || g.tickets.redeem(key) {
		value, err := g.browsers.open()
		if err != nil {
			return nil, err
		}
		return &http.Cookie{Name: CookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}, nil //nolint:gosec // plain HTTP on loopback: a Secure cookie would not come back
	}
	g.failures.Take()
	return nil, forbidden("the launch link is wrong, used or too old: `bridge open` makes a new one, and `bridge url` prints one")
}

func forbidden(sentence string) error { return bridge.Errorf(bridge.Denied, "%s", sentence) }

// contentPolicy lets the page run only its own files. Styles may be inline, because
// Svelte sets them on elements.
const contentPolicy = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// SecurityHeaders sets the headers of every answer, including errors.
func SecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
