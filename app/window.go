//go:build linux || windows

package app

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/options/linux"
	"github.com/wailsapp/wails/v2/pkg/runtime"

	"bridge/app/mark"
)

// bootPage is what the window shows until the dashboard is there. It is all that
// comes through the window's own scheme.
//
//go:embed boot.html
var bootPage []byte

// window is the native window. Its methods may be called before it is there:
// they then count for when it is.
type window struct {
	link   *link
	hidden bool
	// keeps reports whether closing the window leaves the app in the tray.
	keeps func() bool
	// began is called when Wails has set itself up.
	began func()

	quitting atomic.Bool // the app shall end, not hide
	ending   atomic.Bool // and it does

	mu     sync.Mutex      // guards below
	ctx    context.Context //nolint:containedctx // Wails' handle of the window, nil before its first page
	url    string          // the address of the present broker's dashboard, empty before it is known
	opened string          // the address of the dashboard that the boot page has led to, empty before
	wanted bool            // it shall be shown as soon as it is there
	place  string          // where in the dashboard the boot page shall lead
}

// bootPatience is how long the boot page's question waits for a broker before it
// is answered by what is wrong.
const bootPatience = 3 * time.Second

// booted answers the boot page: where to go, or why it cannot.
type booted struct {
	URL     string `json:"url,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ServeHTTP serves the boot page and its one question.
func (w *window) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/boot" {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = out.Write(bootPage) // the window is ours: it is there
		return
	}
	if r.URL.Query().Has("retry") {
		w.link.retry()
	}
	w.left()
	ctx, cancel := context.WithTimeout(r.Context(), bootPatience)
	defer cancel()
	ticket, err := w.link.ticket(ctx)
	answer := booted{}
	if err != nil {
		answer.Problem = err.Error()
	} else {
		answer.URL = ticket + w.leave(ticket)
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(answer) // as above
}

// left notes that the window shows the boot page: only that one asks.
func (w *window) left() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = ""
}

// leave notes that the dashboard is opened now by that ticket, and returns where in it.
func (w *window) leave(ticket string) (place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = addressOf(ticket)
	w.url = w.opened // the ticket is the broker's own word
	place, w.place = w.place, ""
	return place
}

// addressOf is the dashboard that a link leads to.
func addressOf(link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// run shows the window until the app ends. It must be called on the main
// goroutine. A window that cannot be made is an error, not the app's end.
func (w *window) run() (err error) {
	defer func() {
		if r := recover(); r != nil { // GTK without a display, for one
			err = fmt.Errorf("no window can be shown: %v", r)
		}
	}()
	icon, err := mark.PNG(mark.Draw(128, mark.Plain))
	if err != nil {
		return err
	}
	return wails.Run(&options.App{
		Title: "Bridge", Width: 1200, Height: 800, MinWidth: 360, MinHeight: 400,
		StartHidden:      w.hidden,
		AssetServer:      &assetserver.Options{Handler: w},
		BackgroundColour: options.NewRGB(0x14, 0x18, 0x20),
		OnStartup:        func(context.Context) { w.began() },
		OnDomReady:       w.loaded,
		OnBeforeClose:    w.closing,
		// Linux options without a policy would switch hardware acceleration on.
		Linux: &linux.Options{ProgramName: "bridge", Icon: icon, WebviewGpuPolicy: linux.WebviewGpuPolicyNever},
	})
}

// linksOutside sends links that leave the dashboard to the owner's browser: the
// window has no other pages, and no way back from them.
const linksOutside = `if (location.protocol === "http:") document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[target=_blank]");
  if (!link) return;
  event.preventDefault();
  fetch("/api/open", { method: "POST", headers: { "content-type": "application/json", "x-bridge": "1" }, body: JSON.stringify({ url: link.href }) });
});`

// deadPagePause keeps a page that fails again and again from being opened without end.
const deadPagePause = time.Second

// leaveDead leads away from a page that is none of Bridge's, like the one that says that a
// connection was refused: a broker that ends while its page opens leaves the window there,
// and nothing on it tries again. The dashboard of another broker is left at once. Pages of
// Bridge carry data-bridge, the dashboard from when its program runs.
func leaveDead(moved bool) string {
	return fmt.Sprintf(`(() => {
  const page = document.documentElement.dataset.bridge;
  if (page === "boot" || page && !%t) return;
  setTimeout(() => { location.href = %q; }, page ? 0 : %d);
})();`, moved, bootAddress, deadPagePause.Milliseconds())
}

// loaded is called after each page that the window has loaded. Commands to the window work only
// from the first call on: before, Wails undoes them.
func (w *window) loaded(ctx context.Context) {
	w.mu.Lock()
	first := w.ctx == nil
	w.ctx = ctx
	wanted, moved := w.wanted, w.moved()
	w.mu.Unlock()
	runtime.WindowExecJS(ctx, linksOutside+leaveDead(moved))
	if !first {
		return
	}
	if wanted {
		w.show("")
	}
	if w.quitting.Load() {
		w.quit()
	}
}

// closing decides what the window's close button does: it hides the window where
// a tray brings it back, else it ends the app. Every way to end goes through
// here, and just one may pass: a second one would end a main loop that is gone
// and bring the process down.
func (w *window) closing(ctx context.Context) (prevent bool) {
	if !w.quitting.Load() && w.keeps() {
		runtime.WindowHide(ctx)
		return true
	}
	return !w.ending.CompareAndSwap(false, true)
}

// handle is Wails' handle, nil before there is a window.
func (w *window) handle() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ctx
}

// show brings the window to the front, at a place of the dashboard, like
// "#/storage", when one is given.
func (w *window) show(place string) {
	w.mu.Lock()
	ctx, booted := w.ctx, w.opened != "" && !w.moved()
	w.wanted = true
	if !booted && place != "" {
		w.place = place // the boot page leads there
	}
	w.mu.Unlock()
	if ctx == nil {
		return
	}
	if booted && place != "" {
		runtime.WindowExecJS(ctx, "location.hash="+strconv.Quote(place))
	}
	runtime.WindowUnminimise(ctx)
	runtime.WindowShow(ctx)
}

// moved reports whether the window was led to the dashboard of a broker that is no longer
// the one: it is on its way back to the boot page then, whose question ends this. mu is held.
func (w *window) moved() bool {
	return w.opened != "" && w.url != "" && w.opened != w.url
}

// follow keeps the window on the dashboard of the present broker: after a broker
// that serves it at another address the boot page asks anew. One that comes back
// at the same address is the page's own business, which keeps what is being
// written there. A page of the old broker that is just opening may get in between:
// loaded leads away from that. A window that is not there yet does so with its
// first page, too: Wails ends a process that asks it for something without its handle.
func (w *window) follow(address string) {
	if address == "" {
		return
	}
	w.mu.Lock()
	ctx, known := w.ctx, w.url == address
	w.url = address
	moved := w.moved()
	w.mu.Unlock()
	if ctx != nil && moved && !known {
		runtime.WindowReloadApp(ctx)
	}
}

// quit ends the window for good.
func (w *window) quit() {
	w.quitting.Store(true)
	if ctx := w.handle(); ctx != nil {
		runtime.Quit(ctx)
	}
}
