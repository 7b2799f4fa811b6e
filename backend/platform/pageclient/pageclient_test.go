package pageclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"bridge/backend/core/bridge"
)

// served returns a signed-in client of a page with these addresses, beside /launch.
func served(t *testing.T, pages map[string]http.HandlerFunc) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /launch", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "page", Value: r.URL.Query().Get("key"), Path: "/"})
	})
	for pattern, answer := range pages {
		mux.HandleFunc(pattern, answer)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	c, err := Open(t.Context(), server.URL+"/launch?key=k")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCAN_01_OnlyALaunchLinkIsOpened(t *testing.T) {
	for _, link := range []string{"", "no link", "http://127.0.0.1:1/", "http://127.0.0.1:1/launches?key=k"} {
		if _, err := Open(t.Context(), link); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), fmt.Sprintf("%q", link)) {
			t.Errorf("%q: %v", link, err)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := Open(t.Context(), server.URL+"/launch"); bridge.CodeOf(err) != bridge.Internal || !strings.Contains(err.Error(), "GET /launch is answered with 404") {
		t.Errorf("a page that knows no such link: %v", err)
	}
}

func TestCAN_01_RequestsCarryTheCookieTheMarkAndTheBody(t *testing.T) {
	c := served(t, map[string]http.HandlerFunc{
		"POST /api/echo": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			cookie, err := r.Cookie("page")
			if err != nil || r.Header.Get("x-bridge") != "1" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("cookie %v, %v, headers %v", cookie, err, r.Header)
			}
			fmt.Fprintf(w, `{"body":%q,"cookie":%q}`, body, cookie.Value)
		},
	})
	var answer struct{ Body, Cookie string }
	if err := c.Ask(t.Context(), http.MethodPost, "/api/echo", map[string]int{"a": 1}, &answer); err != nil || answer.Body != `{"a":1}` || answer.Cookie != "k" {
		t.Errorf("with a body: %+v, %v", answer, err)
	}
	if err := c.Ask(t.Context(), http.MethodPost, "/api/echo", nil, &answer); err != nil || answer.Body != "" {
		t.Errorf("without a body: %+v, %v", answer, err)
	}
	if err := c.Ask(t.Context(), http.MethodPost, "/api/echo", nil, nil); err != nil {
		t.Errorf("an answer that is dropped: %v", err)
	}
	if cookies, err := c.Cookies(t.Context()); cookies != "page=k" || err != nil {
		t.Errorf("cookies: %q, %v", cookies, err)
	}
}

func TestCAN_01_RefusalsAreErrorsOfDoAndAnswersOfSend(t *testing.T) {
	status := http.StatusTeapot
	c := served(t, map[string]http.HandlerFunc{
		"GET /api/x": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not now", status) },
	})
	for _, tt := range []struct {
		status int
		code   bridge.Code
	}{{404, bridge.Internal}, {503, bridge.Unavailable}, {204, bridge.Internal}} {
		status = tt.status
		err := c.Get(t.Context(), "/api/x", nil)
		if bridge.CodeOf(err) != tt.code || !strings.Contains(err.Error(), fmt.Sprint("GET /api/x is answered with ", tt.status)) {
			t.Errorf("Get at %d: %v", tt.status, err)
		}
		response, err := c.Send(t.Context(), http.MethodGet, "/api/x", nil)
		if err != nil || response.StatusCode != tt.status {
			t.Fatalf("Send at %d: %v", tt.status, err)
		}
		response.Body.Close()
	}
	status = 200
	if err := c.Get(t.Context(), "/api/x", &struct{}{}); err == nil || !strings.Contains(err.Error(), "read the answer to the page's GET /api/x") {
		t.Errorf("an answer that is no JSON: %v", err)
	}
}

func TestCAN_01_TheClientLooksAtOnceAndAtEachEvent(t *testing.T) {
	next := make(chan struct{})
	c := served(t, map[string]http.HandlerFunc{
		"GET /api/events": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			for range next {
				fmt.Fprint(w, ": a comment\nevent: changed\ndata: {}\n\n")
				w.(http.Flusher).Flush()
			}
		},
	})
	var looks atomic.Int32
	err := c.Await(t.Context(), func() (bool, error) {
		if looks.Add(1) < 3 {
			go func() { next <- struct{}{} }()
			return false, nil
		}
		return true, nil
	})
	if err != nil || looks.Load() != 3 {
		t.Errorf("%d looks, %v", looks.Load(), err)
	}
	wrong := errors.New("wrong")
	if err := c.Await(t.Context(), func() (bool, error) { return false, wrong }); !errors.Is(err, wrong) {
		t.Errorf("a look that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Await(ctx, func() (bool, error) { cancel(); return false, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends: %v", err)
	}
	close(next)
	if err := c.Await(t.Context(), func() (bool, error) { return false, nil }); !errors.Is(err, io.EOF) {
		t.Errorf("a stream that ends: %v", err)
	}
}
