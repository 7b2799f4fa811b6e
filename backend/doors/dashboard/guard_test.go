package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/connect"
	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/platform/config"
)

// samplePath fills a pattern's variables.
func samplePath(pattern string) string {
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(pattern, "x")
}

// methodsToTry are tried on every route, whether it takes them or not.
var methodsToTry = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions}

func TestAUT_01_DEC_20_CHT_13_EveryRouteNeedsCookieAndLoopbackHost(t *testing.T) {
	w := newWorld(t)
	_, port, err := net.SplitHostPort(w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	spoilers := map[string]func(*http.Request){
		"no cookie":         func(r *http.Request) { r.Header.Del("Cookie") },
		"wrong cookie":      func(r *http.Request) { r.Header.Set("Cookie", guard.CookieName+"=AAAA") },
		"empty cookie":      func(r *http.Request) { r.Header.Set("Cookie", guard.CookieName+"=") },
		"the secret itself": func(r *http.Request) { r.Header.Set("Cookie", guard.CookieName+"="+string(testSecret)) },
		"foreign Host":      func(r *http.Request) { r.Host = "evil.example:" + port },
		"rebinding name":    func(r *http.Request) { r.Host = "127.0.0.1.nip.io:" + port },
		"Host in capitals":  func(r *http.Request) { r.Host = "LOCALHOST:" + port },
		"dot behind Host":   func(r *http.Request) { r.Host = "localhost.:" + port },
		"other port":        func(r *http.Request) { r.Host = "127.0.0.1:1" },
		"Host without port": func(r *http.Request) { r.Host = "127.0.0.1" },
		"other loopback":    func(r *http.Request) { r.Host = "127.0.0.2:" + port },
	}
	paths := []string{"/nowhere", "/api", "/api/state/", "/assets/../index.html"}
	for _, rt := range w.board.routes {
		paths = append(paths, samplePath(rt.pattern))
	}
	for _, path := range paths {
		for _, method := range methodsToTry {
			for name, spoil := range spoilers {
				what := method + " " + path + " with " + name
				a := w.do(w.request(method, path, "", spoil))
				if method == http.MethodHead {
					if a.status != http.StatusForbidden {
						t.Errorf("%s: status %d, want 403", what, a.status)
					}
					continue
				}
				refused(t, what, a, http.StatusForbidden)
			}
		}
	}
	if got := len(w.broker.sent()); got != 0 {
		t.Errorf("%d messages were sent by refused requests", got)
	}
}

func TestRWM_20_AForwardedPortIsToldApartFromAForeignName(t *testing.T) {
	w := newWorld(t)
	_, port, err := net.SplitHostPort(w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"127.0.0.1:1":          "on port " + port + ", and your browser asked for port 1: ",
		"localhost:8080":       "`ssh -L " + port + ":127.0.0.1:" + port + "`",
		"[::1]:8080":           "asked for port 8080",
		"localhost":            "asked for port 80:",
		"[::1]":                "asked for port 80:",
		"evil.example:" + port: "answers to 127.0.0.1 and localhost only",
		"evil.example":         "answers to 127.0.0.1 and localhost only",
	} {
		a := w.do(w.request(http.MethodGet, "/", "", func(r *http.Request) { r.Host = host }))
		if a.status != http.StatusForbidden || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %q", host, a.status, a.body, want)
		}
	}
}

func TestAUT_01_LoopbackNamesWithTheRightPortAreServed(t *testing.T) {
	w := newWorld(t)
	_, port, err := net.SplitHostPort(w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1:", "localhost:", "[::1]:"} {
		a := w.do(w.request(http.MethodGet, "/api/state", "", func(r *http.Request) { r.Host = host + port }))
		if a.status != http.StatusOK {
			t.Errorf("Host %s%s: status %d, want 200", host, port, a.status)
		}
	}
}

func TestAUT_01_OnlyALoopbackConnectionIsServed(t *testing.T) {
	g := &guard.Guard{}
	tests := []struct {
		name  string
		local net.Addr
		host  string
		ok    bool
	}{
		{"loopback", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4777}, "127.0.0.1:4777", true},
		{"loopback v6", &net.TCPAddr{IP: net.IPv6loopback, Port: 4777}, "[::1]:4777", true},
		{"mapped loopback", &net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1"), Port: 4777}, "localhost:4777", true},
		{"default port left out", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "localhost", true},
		{"a network card's address", &net.TCPAddr{IP: net.IPv4(192, 168, 1, 2), Port: 4777}, "127.0.0.1:4777", false},
		{"no connection", nil, "127.0.0.1:4777", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = tt.host
			if tt.local != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
			}
			if err := g.Host(r); (err == nil) != tt.ok {
				t.Errorf("host(%v, %q) = %v, want ok %t", tt.local, tt.host, err, tt.ok)
			}
		})
	}
}

func TestAUT_01_AnotherCookieOfTheSameNameDoesNotHideOurs(t *testing.T) {
	w := newWorld(t)
	a := w.do(w.request(http.MethodGet, "/api/state", "", func(r *http.Request) {
		r.Header.Set("Cookie", guard.CookieName+"=from-another-port; "+r.Header.Get("Cookie"))
	}))
	if a.status != http.StatusOK {
		t.Errorf("status %d, want 200", a.status)
	}
}

// spoiled is a way in which a request is none of our own page's, and its status.
type spoiled struct {
	name   string
	status int
	spoil  func(*http.Request)
}

func spoiledRequests(server string) []spoiled {
	return []spoiled{
		{"foreign Origin", 403, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }},
		{"Origin of another port", 403, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }},
		{"Origin of the other loopback name", 403, func(r *http.Request) {
			r.Header.Set("Origin", strings.Replace(server, "127.0.0.1", "localhost", 1))
		}},
		{"Origin over TLS", 403, func(r *http.Request) { r.Header.Set("Origin", strings.Replace(server, "http:", "https:", 1)) }},
		{"Origin null", 403, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		{"two Origins", 403, func(r *http.Request) { r.Header["Origin"] = []string{server, "http://evil.example"} }},
		{"cross-site fetch", 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
		{"same-site fetch", 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }},
		{"no x-bridge", 403, func(r *http.Request) { r.Header.Del("x-bridge") }},
		{"wrong x-bridge", 403, func(r *http.Request) { r.Header.Set("x-bridge", "true") }},
		{"two x-bridge", 403, func(r *http.Request) { r.Header["X-Bridge"] = []string{"1", "1"} }},
		{"no Content-Type", 415, func(r *http.Request) { r.Header.Del("Content-Type") }},
		{"form", 415, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }},
		{"plain text", 415, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		{"almost JSON", 415, func(r *http.Request) { r.Header.Set("Content-Type", "application/jsonp") }},
		{"malformed type", 415, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset") }},
	}
}

// goodBodies has a body for each mutation that passes its checks.
var goodBodies = map[string]string{
	"/api/sessions/{name}/message":    `{"body":"hello"}`,
	"/api/jobs/{job}/message":         `{"body":"hello"}`,
	"/api/approvals/{id}":             `{"decision":"allow"}`,
	"/api/away":                       `{"on":true}`,
	"/api/questions/{id}":             `{"text":"yes"}`,
	"/api/rules/{id}":                 `{}`,
	"/api/exchanges":                  `{"a":"peer-1","b":"peer-2","action":"pause"}`,
	"/api/needs/{id}":                 `{"away":true}`,
	"/api/decisions":                  `{"topic":"db","text":"x","scope":"all"}`,
	"/api/decisions/{topic}/withdraw": `{}`,
	"/api/runs/{run}/comments":        `{"comments":[{"path":"a.txt","line":1,"side":"new","body":"hello"}]}`,
	"/api/runs/{run}/finish":          `{"action":"keep"}`,
	"/api/subagents/message":          `{"job":"codex-job-0a1b2c3d","body":"hello"}`,
	"/api/subagents/settings":         `{"job":"codex-job-0a1b2c3d","title":"hello"}`,
	"/api/subagents/cancel":           `{"job":"codex-job-0a1b2c3d"}`,
	"/api/messages":                   `{"to":"claude-app","body":"hello"}`,
	"/api/agents/{kind}/connect":      `{}`,
	"/api/agents/{kind}/disconnect":   `{}`,
	"/api/storage/work":               `{"action":"check"}`,
	"/api/settings":                   `{"autoWake":true}`,
	"/api/network/invite":             `{}`,
	"/api/network/link":               `{"address":"192.168.1.20","code":"7K3M-QX9T"}`,
	"/api/network/peers/{id}":         `{}`,
	"/api/network/policy":             `{"revision":"x","enabled":true}`,
	"/api/drafts":                     `{"key":"chat.run","value":"hello"}`,
	"/api/open":                       `{"url":"https://example.org/"}`,
}

func TestAUT_02_CHT_13_MutationsNeedHeaderJSONAndSameOrigin(t *testing.T) {
	w := newWorld(t)
	w.broker.join(t, claudeSession())
	tests := spoiledRequests(w.server.URL)
	mutations := 0
	for _, rt := range w.board.routes {
		if rt.kind != guard.Mutation {
			continue
		}
		mutations++
		body, known := goodBodies[rt.pattern]
		if !known {
			t.Fatalf("the mutation %s has no sample body here: add one", rt.pattern)
		}
		path := strings.NewReplacer("{name}", "claude-app", "{job}", "x", "{kind}", "claude").Replace(rt.pattern)
		for _, tt := range tests {
			t.Run(tt.name+" "+rt.pattern, func(t *testing.T) {
				refused(t, tt.name, w.do(w.request(rt.method, path, body, tt.spoil)), tt.status)
			})
		}
	}
	if mutations == 0 {
		t.Fatal("the table has no mutation")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		for _, tt := range tests {
			t.Run("AUT-02 "+tt.name+" on an unknown address by "+method, func(t *testing.T) {
				refused(t, tt.name, w.do(w.request(method, "/api/nowhere", "{}", tt.spoil)), tt.status)
			})
		}
		refused(t, "a good "+method+" to an unknown address", w.do(w.request(method, "/api/nowhere", "{}")), http.StatusNotFound)
	}
	// What has no body has no type of one; the rest holds for it, too.
	bare := func(r *http.Request) { r.Header.Del("Content-Type") }
	refused(t, "a DELETE without a body", w.do(w.request(http.MethodDelete, "/api/nowhere", "", bare)), http.StatusNotFound)
	refused(t, "a POST without a body", w.do(w.request(http.MethodPost, "/api/nowhere", "", bare)), http.StatusUnsupportedMediaType)
	for _, tt := range tests {
		if tt.status != http.StatusForbidden {
			continue
		}
		refused(t, "a DELETE without a body, "+tt.name, w.do(w.request(http.MethodDelete, "/api/nowhere", "", func(r *http.Request) { bare(r); tt.spoil(r) })), tt.status)
	}
	refused(t, "a DELETE without a body of another type", w.do(w.request(http.MethodDelete, "/api/nowhere", "", func(r *http.Request) {
		r.Header.Set("Content-Type", "text/plain")
	})), http.StatusUnsupportedMediaType)
	if sent := w.broker.sent(); len(sent) != 0 {
		t.Errorf("refused requests sent %v", sent)
	}
	for _, origin := range []string{"", w.server.URL} {
		if a := w.sayFrom(origin); a.status != http.StatusOK {
			t.Errorf("Origin %q: status %d, want 200: %s", origin, a.status, a.body)
		}
	}
}

// sayFrom is a good message from a page of that origin, "" for a program that has
// none.
func (w *world) sayFrom(origin string) answer {
	w.t.Helper()
	return w.do(w.request(http.MethodPost, "/api/sessions/claude-app/message", `{"body":"hello"}`, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
	}))
}

func TestAUT_02_ReadsFromAnotherSiteAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, rt := range w.board.routes {
		if rt.kind != guard.Read && rt.kind != guard.Stream {
			continue
		}
		path := samplePath(rt.pattern)
		for _, site := range []string{"cross-site", "same-site"} {
			a := w.do(w.request(http.MethodGet, path, "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", site) }))
			refused(t, site+" GET "+path, a, http.StatusForbidden)
		}
		a := w.do(w.request(http.MethodGet, path, "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }))
		refused(t, "foreign origin GET "+path, a, http.StatusForbidden)
	}
}

func TestEveryRouteRefusesOtherMethodsAndUnknownPathsAre404(t *testing.T) {
	w := newWorld(t)
	taken := map[string][]string{}
	for _, rt := range w.board.routes {
		taken[rt.pattern] = append(taken[rt.pattern], rt.methods()...)
	}
	for pattern, methods := range taken {
		for _, method := range methodsToTry {
			if strings.Contains(strings.Join(methods, " "), method) {
				continue
			}
			a := w.do(w.request(method, samplePath(pattern), "{}"))
			if method == http.MethodHead {
				if a.status != http.StatusMethodNotAllowed {
					t.Errorf("HEAD %s: status %d, want 405", pattern, a.status)
				}
				continue
			}
			refused(t, method+" "+pattern, a, http.StatusMethodNotAllowed)
			if a.header.Get("Allow") == "" {
				t.Errorf("%s %s: no Allow header", method, pattern)
			}
		}
	}
	for _, path := range []string{"/nowhere", "/api", "/api/", "/api/state/", "/api//state", "/index.html", "/assets/none.js", "/assets/", "/assets/..%2Findex.html", "/favicon.ico", "/login"} {
		refused(t, "GET "+path, w.get(path), http.StatusNotFound)
	}
}

func TestAUT_01_TheLaunchLinkGivesAStrictCookieAndABouncePage(t *testing.T) {
	w := newWorld(t)
	a := w.do(w.request(http.MethodGet, guard.LaunchPath(w.tickets.Link()), "", func(r *http.Request) { r.Header.Del("Cookie") }))
	if a.status != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", a.status, a.body)
	}
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if cookie.Name != "bridge_ui" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("cookie %v, want bridge_ui; Path=/; HttpOnly; SameSite=Strict", cookie)
	}
	if strings.Contains(a.header.Get("Set-Cookie"), string(testSecret)) {
		t.Error("the cookie holds the secret itself")
	}
	script := regexp.MustCompile(`<script>(.*)</script>`).FindStringSubmatch(a.body)
	if script == nil || script[1] != `location.replace("/"+location.hash)` {
		t.Fatalf("the page does not replace itself by / and the place in it: %s", a.body)
	}
	hash := sha256.Sum256([]byte(script[1]))
	allowed := "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src "+allowed) {
		t.Errorf("the policy %q does not allow the page's own script", policy)
	}
	if a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page with the key in its address may be kept or passed on: %v", a.header)
	}
	with := func(r *http.Request) { r.Header.Set("Cookie", cookie.Name+"="+cookie.Value) }
	if a := w.do(w.request(http.MethodGet, "/api/state", "", with)); a.status != http.StatusOK {
		t.Errorf("with the new cookie: status %d, want 200", a.status)
	}
}

func TestAUT_04_ATicketOpensTheDashboardOnceWithin30Seconds(t *testing.T) {
	w := newWorld(t)
	stranger := func(r *http.Request) { r.Header.Del("Cookie") }
	open := func(key string) answer { return w.do(w.request(http.MethodGet, guard.LaunchPath(key), "", stranger)) }

	key := w.tickets.Issue()
	if a := w.do(w.request(http.MethodHead, guard.LaunchPath(key), "", stranger)); a.status == http.StatusOK {
		t.Error("HEAD opened the launch link")
	}
	image := func(r *http.Request) { stranger(r); r.Header.Set("Sec-Fetch-Dest", "image") }
	refused(t, "launch as a picture", w.do(w.request(http.MethodGet, guard.LaunchPath(key), "", image)), http.StatusForbidden)
	if a := open(key); a.status != http.StatusOK {
		t.Fatalf("first use: status %d, want 200: %s", a.status, a.body)
	}
	refused(t, "second use", open(key), http.StatusForbidden)

	late := w.tickets.Issue()
	w.clock.Advance(30 * time.Second)
	refused(t, "after 30 seconds", open(late), http.StatusForbidden)

	refused(t, "an empty key", open(""), http.StatusForbidden)
	refused(t, "no key", w.do(w.request(http.MethodGet, "/launch", "", stranger)), http.StatusForbidden)
	refused(t, "a wrong key", open(string(testSecret)+"x"), http.StatusForbidden)
	refused(t, "a key with a valid cookie", w.get(guard.LaunchPath("wrong")), http.StatusForbidden)
}

func TestAUT_01_WrongLaunchKeysAreRateLimited(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		refused(t, fmt.Sprintf("wrong key %d", i), w.get(guard.LaunchPath("wrong")), http.StatusForbidden)
	}
	refused(t, "one more", w.get(guard.LaunchPath("wrong")), http.StatusTooManyRequests)
	refused(t, "the right key meanwhile", w.get(guard.LaunchPath(w.tickets.Link())), http.StatusTooManyRequests)
	w.clock.Advance(time.Minute)
	if a := w.get(guard.LaunchPath(w.tickets.Link())); a.status != http.StatusOK {
		t.Errorf("a minute later: status %d, want 200", a.status)
	}
}

func TestAUT_03_NoSecretInLogsAnswersOrErrors(t *testing.T) {
	fail := false
	w := newWorld(t, func(o *Options) {
		o.Secret = func() (config.Secret, error) {
			if fail {
				return "", errors.New("the file is locked")
			}
			return testSecret, nil
		}
	})
	var seen strings.Builder
	note := func(a answer) {
		seen.WriteString(a.body)
		for name, values := range a.header {
			seen.WriteString(name + ": " + strings.Join(values, ","))
		}
	}
	ticket := w.tickets.Issue()
	note(w.get(guard.LaunchPath(ticket)))
	note(w.get(guard.LaunchPath(w.tickets.Link())))
	note(w.get("/launch?key=" + string(testSecret) + "&key=wrong"))
	note(w.get("/api/state?key=" + string(testSecret)))
	note(w.get("/api/messages?peer=x&before=" + string(testSecret)))
	broken := w.request(http.MethodGet, "/api/state?key="+string(testSecret), "")
	fail = true
	a := w.do(broken)
	refused(t, "an unreadable secret", a, http.StatusInternalServerError)
	note(a)
	for _, word := range []string{string(testSecret), ticket} {
		if strings.Contains(seen.String(), word) {
			t.Error("an answer holds a secret")
		}
	}
	log := w.log.String()
	if strings.Contains(log, string(testSecret)) || strings.Contains(log, ticket) || strings.Contains(log, "key=") {
		t.Errorf("the log holds a key: %s", log)
	}
	if !strings.Contains(log, "the file is locked") || strings.Contains(a.body, "locked") {
		t.Errorf("the cause belongs in the log (%s) and not in the answer (%s)", log, a.body)
	}
}

func TestAUT_01_WithoutASecretNobodyComesIn(t *testing.T) {
	secret := testSecret
	w := newWorld(t, func(o *Options) { o.Secret = func() (config.Secret, error) { return secret, nil } })
	good := w.request(http.MethodGet, "/api/state", "")
	secret = ""
	refused(t, "cookie of an earlier secret", w.do(good), http.StatusInternalServerError)
	good2, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+"/launch?key=", nil)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "an empty key for an empty secret", w.do(good2), http.StatusInternalServerError)
}

func TestAUT_01_ANewSecretShutsOldCookiesOut(t *testing.T) {
	secret := testSecret
	w := newWorld(t, func(o *Options) { o.Secret = func() (config.Secret, error) { return secret, nil } })
	old := w.request(http.MethodGet, "/api/state", "")
	secret = "another-secret-of-32-characters!"
	refused(t, "the old cookie", w.do(old), http.StatusForbidden)
}

// A person who opens a bookmark in a browser without access reads what to do; everything else is
// refused as before.
func TestPGE_13_ABrowserWithoutAccessIsToldWhatToDo(t *testing.T) {
	w := newWorld(t)
	ask := func(method, path string, headers ...string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, w.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return w.do(r)
	}
	navigates := []string{"Sec-Fetch-Dest", "document", "Sec-Fetch-Mode", "navigate"}
	door := ask(http.MethodGet, "/", navigates...)
	if door.status != http.StatusForbidden || !strings.Contains(door.body, "<code>bridge open</code>") || !strings.HasPrefix(door.header.Get("Content-Type"), "text/html") {
		t.Errorf("the door is %d, %s: %s", door.status, door.header.Get("Content-Type"), door.body)
	}
	if policy := door.header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || len(door.header.Values("Set-Cookie")) > 0 {
		t.Errorf("its policy is %q, its cookies %q", policy, door.header.Values("Set-Cookie"))
	}
	for name, a := range map[string]answer{
		"a program":               ask(http.MethodGet, "/"),
		"another address":         ask(http.MethodGet, "/api/state", navigates...),
		"another method":          ask(http.MethodPost, "/", navigates...),
		"a frame of another page": ask(http.MethodGet, "/", "Sec-Fetch-Dest", "iframe", "Sec-Fetch-Mode", "navigate"),
		"a script's request":      ask(http.MethodGet, "/", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors"),
	} {
		if a.status != http.StatusForbidden || !strings.HasPrefix(a.body, `{"error"`) {
			t.Errorf("%s is answered %d: %s", name, a.status, a.body)
		}
	}
	if a := w.get("/"); a.status != http.StatusOK {
		t.Errorf("a browser with access is answered %d", a.status)
	}
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	w := newWorld(t)
	want := map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	}
	for _, path := range []string{"/", "/assets/app.js", "/api/state", "/nowhere", guard.LaunchPath("wrong"), guard.LaunchPath(w.tickets.Link())} {
		a := w.get(path)
		for name, value := range want {
			if got := a.header.Get(name); got != value {
				t.Errorf("GET %s: %s = %q, want %q", path, name, got, value)
			}
		}
		policy := a.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src '", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("GET %s: the policy %q lacks %s", path, policy, part)
			}
		}
		if scripts := regexp.MustCompile(`script-src[^;]*`).FindString(policy); strings.Contains(scripts, "unsafe") {
			t.Errorf("GET %s: the policy allows %s", path, scripts)
		}
	}
}

func TestABugBecomesA500WithoutItsCause(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Agents = toldAgents{list: func() []connect.Agent { panic("a bug with details") }}
	})
	a := w.get("/api/agents")
	refused(t, "a panic", a, http.StatusInternalServerError)
	if strings.Contains(a.body, "details") {
		t.Errorf("the answer tells the cause: %s", a.body)
	}
	if !strings.Contains(w.log.String(), "a bug with details") {
		t.Error("the log does not tell the cause")
	}
}

func TestThePageIsServedOrSaysHowToBuildIt(t *testing.T) {
	w := newWorld(t)
	if a := w.get("/"); a.status != 200 || a.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(a.body, "<title>Bridge") {
		t.Errorf("GET / = %d %s %q", a.status, a.header.Get("Content-Type"), a.body)
	}
	if a := w.get("/assets/app.js"); a.status != 200 || a.header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("GET /assets/app.js = %d %s", a.status, a.header.Get("Content-Type"))
	}
	unbuilt := newWorld(t, func(o *Options) { o.Page = nil })
	a := unbuilt.get("/")
	refused(t, "no page", a, http.StatusServiceUnavailable)
	if !strings.Contains(a.body, "npm run build") {
		t.Errorf("the answer does not say how to build the page: %s", a.body)
	}
	if !bytes.Contains([]byte(unbuilt.get("/api/state").body), []byte(`"revision"`)) {
		t.Error("without a page the API is gone too")
	}
}

// keptBrowsers is a store of cookies that a broker leaves to the next one.
type keptBrowsers struct{ list []config.Browser }

func (k *keptBrowsers) Browsers() ([]config.Browser, error) { return slices.Clone(k.list), nil }

func (k *keptBrowsers) SetBrowsers(list []config.Browser) error {
	k.list = slices.Clone(list)
	return nil
}

// What lies on the disk opens nothing: neither the launch secret nor the list of browsers
// holds a key or a cookie.
func TestSEC_01_NothingOnTheDiskOpensThePage(t *testing.T) {
	stored := &keptBrowsers{}
	w := newWorld(t, func(o *Options) { o.Browsers = stored })
	refused(t, "the launch secret as a key", w.get(guard.LaunchPath(string(testSecret))), http.StatusForbidden)
	if a := w.get("/api/state"); a.status != http.StatusOK {
		t.Fatalf("with a cookie: status %d", a.status)
	}
	if len(stored.list) != 1 {
		t.Fatalf("stored are %d browsers, want 1", len(stored.list))
	}
	for _, value := range []string{string(testSecret), stored.list[0].Hash} {
		with := func(r *http.Request) { r.Header.Set("Cookie", guard.CookieName+"="+value) }
		refused(t, "a stored value as a cookie", w.do(w.request(http.MethodGet, "/api/state", "", with)), http.StatusForbidden)
	}
	if strings.Contains(fmt.Sprint(stored.list), w.cookie) {
		t.Error("the stored list holds the cookie itself")
	}
	next := newWorld(t, func(o *Options) { o.Browsers = stored })
	next.cookie = w.cookie
	if a := next.get("/api/state"); a.status != http.StatusOK {
		t.Errorf("after a restart of the broker the cookie gets status %d, want 200", a.status)
	}
}

func TestSEC_01_ACookieExpiresAndCanBeEnded(t *testing.T) {
	day := 24 * time.Hour
	for name, step := range map[string]struct {
		every time.Duration // between two uses
		last  time.Duration // it is still good
	}{
		"unused": {14*day - time.Second, 14*day - time.Second},
		"used":   {13 * day, 78 * day},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if a := w.get("/api/state"); a.status != http.StatusOK {
				t.Fatalf("at first: status %d", a.status)
			}
			for age := step.every; age <= step.last; age += step.every {
				w.clock.Advance(step.every)
				if a := w.get("/api/state"); a.status != http.StatusOK {
					t.Fatalf("after %s: status %d, want 200", age, a.status)
				}
				if name == "unused" {
					break
				}
			}
			w.clock.Advance(14 * day)
			refused(t, "two weeks later, or after ninety days", w.get("/api/state"), http.StatusForbidden)
		})
	}
	t.Run("ended", func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Now = time.Now }) // a stream's deadlines go by the real clock
		stream := w.openStream(t)
		w.board.EndCookies()
		for stream.Scan() {
		}
		if err := stream.Err(); err != nil {
			t.Errorf("the stream did not end well: %v", err)
		}
		refused(t, "an ended cookie", w.get("/api/state"), http.StatusForbidden)
	})
}

// The command line of a browser is everybody's to read, so it is opened without a key:
// once, within 30 seconds, and for this user alone.
func TestSEC_01_ABrowserThatIsExpectedNeedsNoKey(t *testing.T) {
	own, userErr := true, error(nil)
	w := newWorld(t, func(o *Options) { o.UserOf = func(net.Conn) (bool, error) { return own, userErr } })
	stranger := func(r *http.Request) { r.Header.Del("Cookie"); r.Close = true }
	enter := func() answer { return w.do(w.request(http.MethodGet, guard.EntryPath, "", stranger)) }
	refused(t, "no PC is expected", enter(), http.StatusForbidden)
	w.tickets.Expect()
	own = false
	refused(t, "the system does not tell whose it is", enter(), http.StatusForbidden)
	own, userErr = false, errors.New("it is user 1002")
	refused(t, "another user", enter(), http.StatusForbidden)
	refused(t, "another user with a link", w.do(w.request(http.MethodGet, guard.LaunchPath(w.tickets.Link()), "", stranger)), http.StatusForbidden)
	refused(t, "another user with a cookie", w.do(w.request(http.MethodGet, "/api/state", "", func(r *http.Request) { r.Close = true })), http.StatusForbidden)
	own, userErr = true, nil
	if a := enter(); a.status != http.StatusOK || a.header.Get("Set-Cookie") == "" {
		t.Fatalf("the expected browser gets status %d", a.status)
	}
	refused(t, "a second one", enter(), http.StatusForbidden)
	w.tickets.Expect()
	w.clock.Advance(30 * time.Second)
	refused(t, "one that comes too late", enter(), http.StatusForbidden)
}

// Whose a connection is may be unclear for a moment, as while its program starts another.
// That refusal ends with its connection: a browser keeps one for minutes.
func TestSEC_01_ARefusedConnectionIsClosedAndTheNextIsLookedAt(t *testing.T) {
	for name, tt := range map[string]struct {
		job    string
		err    error
		status int
	}{
		"it could not be told whose it is": {"", bridge.Errorf(bridge.Unavailable, "more than one program has this connection open: try again"), http.StatusServiceUnavailable},
		"it is a job's":                    {"codex-job-1", nil, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			w := newWorld(t, func(o *Options) {
				o.JobOf = func(net.Conn) (string, error) {
					if looks++; looks == 1 {
						return tt.job, tt.err
					}
					return "", nil
				}
			})
			refused(t, "the first connection", w.get("/api/state"), tt.status)
			for range 2 {
				if a := w.get("/api/state"); a.status != http.StatusOK {
					t.Errorf("the next connection: status %d: %s", a.status, a.body)
				}
			}
			if looks != 2 {
				t.Errorf("%d looks, want one for each connection: 2", looks)
			}
		})
	}
}

func TestSEC_01_ANewLinkEndsTheOldOneAndItsTickets(t *testing.T) {
	w := newWorld(t)
	link, ticket := w.tickets.Link(), w.tickets.Issue()
	for range 2 {
		if a := w.get(guard.LaunchPath(link)); a.status != http.StatusOK {
			t.Fatalf("the link: status %d", a.status)
		}
	}
	w.tickets.Renew()
	refused(t, "the old link", w.get(guard.LaunchPath(link)), http.StatusForbidden)
	refused(t, "a ticket of before", w.get(guard.LaunchPath(ticket)), http.StatusForbidden)
	if a := w.get(guard.LaunchPath(w.tickets.Link())); a.status != http.StatusOK {
		t.Errorf("the new link: status %d", a.status)
	}
}
