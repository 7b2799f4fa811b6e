package dashboard

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

func TestDSK_01_ALinkIsOpenedOutsideTheWindow(t *testing.T) {
	var opened []string
	var failure error
	w := newWorld(t, func(o *Options) {
		o.OpenLink = func(_ context.Context, link string) error {
			opened = append(opened, link)
			return failure
		}
	})
	for _, body := range []string{
		`{"url":"file:///etc/passwd"}`, `{"url":"file://localhost/etc/passwd"}`, `{"url":"vscode://a/b"}`, `{"url":"javascript:alert(1)"}`, `{"url":"http://"}`, `{"url":"-x"}`, `{"url":""}`, `{"link":"http://a/"}`,
	} {
		refused(t, body, w.post("/api/open", body), http.StatusBadRequest)
	}
	if a := w.post("/api/open", `{"url":"https://example.org/a?b=c"}`); a.status != http.StatusOK {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if len(opened) != 1 || opened[0] != "https://example.org/a?b=c" {
		t.Errorf("opened %q", opened)
	}
	failure = errors.New("no xdg-open")
	refused(t, "no browser", w.post("/api/open", `{"url":"http://a/"}`), http.StatusServiceUnavailable)
	refused(t, "nothing to open with", newWorld(t).post("/api/open", `{"url":"http://a/"}`), http.StatusNotImplemented)
}
