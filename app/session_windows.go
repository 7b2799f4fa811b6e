package app

import (
	"context"

	"github.com/wailsapp/go-webview2/webviewloader"

	"bridge/backend/core/bridge"
)

// bootAddress is where Wails serves the window's own page.
const bootAddress = "http://wails.localhost/"

// session is the desktop session that this process runs in. Windows always has a
// tray; notices are not shown there.
type session struct{ clicks chan string }

func openSession() (*session, error) { return &session{}, nil }

func (s *session) hasTray() bool { return true }

func (s *session) notify(context.Context, Notice) error { return nil }

// Close has nothing to end.
func (s *session) Close() error { return nil }

// screenProblem says why no window can be shown: WebView2 is missing. The
// library would offer to download it.
func screenProblem(func(string) string) error {
	version, err := webviewloader.GetAvailableCoreWebView2BrowserVersionString("")
	if err != nil || version == "" {
		return bridge.WithCause(bridge.Unavailable, err, "Microsoft's WebView2 is not installed, so no window can be shown")
	}
	return nil
}
