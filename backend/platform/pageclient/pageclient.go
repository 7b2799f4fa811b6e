// Package pageclient calls a broker's page as the owner's browser does: it signs in with a
// launch link, keeps the cookie and follows the events. `bridge prove`, the tests and the
// benchmarks use it.
package pageclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"

	"bridge/backend/core/bridge"
)

// mostError is how many bytes of a refusal are read.
const mostError = 64 << 10

// Client is a browser that is signed in. Several goroutines may use it.
type Client struct {
	base string // the address without a path
	http *http.Client
}

// Open signs in with a launch link and returns the client. It fails with Invalid if the
// text is no launch link, and as [Client.Do] does.
func Open(ctx context.Context, link string) (*Client, error) {
	base, key, ok := strings.Cut(link, "/launch")
	if !ok || key != "" && key[0] != '?' {
		return nil, bridge.Errorf(bridge.Invalid, "%q is no launch link", link)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("keep the cookies of the page: %w", err)
	}
	c := &Client{base: base, http: &http.Client{Jar: jar}}
	answer, err := c.Do(ctx, http.MethodGet, strings.TrimPrefix(link, base), nil)
	if err != nil {
		return nil, err
	}
	return c, answer.Body.Close()
}

// URL returns the address of a path of the page.
func (c *Client) URL(path string) string { return c.base + path }

// Cookies returns the cookies of the page as a request has them: "name=value; name=value".
func (c *Client) Cookies(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base, nil)
	if err != nil {
		return "", fmt.Errorf("read the cookies of the page: %w", err)
	}
	var pairs []string
	for _, cookie := range c.http.Jar.Cookies(r.URL) {
		pairs = append(pairs, cookie.Name+"="+cookie.Value)
	}
	return strings.Join(pairs, "; "), nil
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Send sends a request and returns the response, whose body the caller closes. The body is
// sent as JSON unless it is nil. A refusal of the page is a response, not an error.
func (c *Client) Send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encode a request of the page: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("make a request of the page: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-bridge", "1")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask as the page: %w", err)
	}
	return answer, nil
}

// Do sends a request as [Client.Send] does. It fails with Unavailable if the status is 503,
// and with Internal for any other status but 200.
func (c *Client) Do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	answer, err := c.Send(ctx, method, path, body)
	if err != nil || answer.StatusCode == http.StatusOK {
		return answer, err
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostError))
	answer.Body.Close() //nolint:errcheck // the refusal is what counts
	code := bridge.Internal
	if answer.StatusCode == http.StatusServiceUnavailable {
		code = bridge.Unavailable
	}
	return nil, bridge.Errorf(code, "the page's %s %s is answered with %s %s", method, path, answer.Status, text)
}

// Ask sends a request and decodes its JSON answer, which it drops if answer is nil. It
// fails as [Client.Do] does, and if the answer is no JSON of that form.
func (c *Client) Ask(ctx context.Context, method, path string, body, answer any) error {
	response, err := c.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
	} else {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	if err != nil {
		return fmt.Errorf("read the answer to the page's %s %s: %w", method, path, err)
	}
	return nil
}

// Get reads a path and decodes its JSON answer. It fails as [Client.Ask] does.
func (c *Client) Get(ctx context.Context, path string, answer any) error {
	return c.Ask(ctx, http.MethodGet, path, nil, answer)
}

// Await calls look at once and after each event of the page, until look returns true. It
// fails if look does, when ctx ends, and when the stream of events ends.
func (c *Client) Await(ctx context.Context, look func() (done bool, err error)) error {
	events, err := c.Do(ctx, http.MethodGet, "/api/events", nil)
	if err != nil {
		return err
	}
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		if !nextEvent(lines) {
			return fmt.Errorf("wait for the page: %w", cmp.Or(ctx.Err(), lines.Err(), io.EOF))
		}
	}
}

// nextEvent reads up to the next event. It returns false at the end of the stream.
func nextEvent(lines *bufio.Scanner) bool {
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			return true
		}
	}
	return false
}
