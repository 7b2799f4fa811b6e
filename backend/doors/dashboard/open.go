package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/drafts"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
)

// openPatience is how long a browser's start may take to fail: one that runs longer
// has started.
const openPatience = 3 * time.Second

// browser starts the owner's browser, and keeps the drafts of its pages.
type browser struct {
	show   func(ctx context.Context, link string) error
	drafts *drafts.Drafts
}

// open answers POST /api/open: it opens a link of the page in the owner's browser.
// The native window requests that, because it shows no other pages.
func (b browser) open(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		URL string `json:"url"`
	}
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	link, err := url.Parse(request.URL)
	if err != nil || link.Scheme != "http" && link.Scheme != "https" || link.Host == "" {
		return bridge.Errorf(bridge.Invalid, "only a link to a web page is opened: it begins with http:// or https://")
	}
	if b.show == nil {
		return bridge.Errorf(bridge.Unsupported, "no browser can be started from here")
	}
	failed := make(chan error, 1)
	go func() { failed <- b.show(context.WithoutCancel(r.Context()), link.String()) }()
	select {
	case err := <-failed:
		if err != nil {
			return bridge.WithCause(bridge.Unavailable, err, "no browser could be started")
		}
	case <-time.After(openPatience):
	}
	return httpjson.WriteJSON(w, dto.Done{})
}
