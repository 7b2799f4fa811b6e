package app

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"bridge/backend/core/bridge"
)

// session is the desktop session that this process runs in, reached over a
// connection of our own to its bus: the tray's library uses, and closes, the
// shared one.
type session struct {
	conn   *dbus.Conn
	clicks chan string // places that a click on a notice opens

	mu     sync.Mutex        // guards below
	places map[uint32]string // by notice
}

// bootAddress is where Wails serves the window's own page.
const bootAddress = "wails://wails/"

const (
	noticeService = "org.freedesktop.Notifications"
	noticePath    = "/org/freedesktop/Notifications"
	watcherName   = "org.kde.StatusNotifierWatcher"
	watcherPath   = "/StatusNotifierWatcher"
	// watcherPatience is how long the tray may take to say that it is there.
	watcherPatience = 5 * time.Second
)

// openSession connects to the session bus, and starts none.
func openSession() (*session, error) {
	conn, err := dbus.SessionBusPrivateNoAutoStartup()
	if err != nil {
		return nil, noSession(err)
	}
	if err = conn.Auth(nil); err == nil {
		err = conn.Hello()
	}
	if err != nil {
		_ = conn.Close() // it never served
		return nil, noSession(err)
	}
	s := &session{conn: conn, clicks: make(chan string, 1), places: map[uint32]string{}}
	// Without a notice service there are no clicks either.
	_ = conn.AddMatchSignal(dbus.WithMatchObjectPath(noticePath), dbus.WithMatchInterface(noticeService))
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	go s.hear(signals)
	return s, nil
}

func noSession(err error) error {
	return bridge.WithCause(bridge.Unavailable, err, "there is no session bus, so there is no tray icon and no notice")
}

// hear follows the notices until the connection ends.
func (s *session) hear(signals <-chan *dbus.Signal) {
	for signal := range signals {
		if len(signal.Body) == 0 {
			continue
		}
		id, ok := signal.Body[0].(uint32)
		if !ok {
			continue
		}
		s.mu.Lock()
		place, ours := s.places[id]
		if signal.Name == noticeService+".NotificationClosed" {
			delete(s.places, id)
		}
		s.mu.Unlock()
		if ours && signal.Name == noticeService+".ActionInvoked" {
			select {
			case s.clicks <- place:
			default: // another click is being served
			}
		}
	}
}

// hasTray reports whether something shows tray icons now.
func (s *session) hasTray() bool {
	ctx, cancel := context.WithTimeout(context.Background(), watcherPatience)
	defer cancel()
	var property dbus.Variant
	err := s.conn.Object(watcherName, watcherPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0,
		watcherName, "IsStatusNotifierHostRegistered").Store(&property)
	registered, ok := property.Value().(bool)
	return err == nil && ok && registered
}

// notify shows a notice.
func (s *session) notify(ctx context.Context, n Notice) error {
	var id uint32
	hints := map[string]dbus.Variant{"desktop-entry": dbus.MakeVariant("bridge")}
	const theServersTime = int32(-1)
	call := s.conn.Object(noticeService, noticePath).CallWithContext(ctx, noticeService+".Notify", 0,
		"Bridge", uint32(0), "bridge", n.Title, n.Text, []string{"default", "Open Bridge"}, hints, theServersTime)
	if err := call.Store(&id); err != nil {
		return fmt.Errorf("show a notice: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[id] = n.Place
	return nil
}

// Close ends the connection.
func (s *session) Close() error { return s.conn.Close() }

// screenProblem says why no window can be shown: there is no display that
// answers. GTK would end the process.
func screenProblem(getenv func(string) string) error {
	if name := getenv("WAYLAND_DISPLAY"); name != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(getenv("XDG_RUNTIME_DIR"), name)
		}
		if answers(name) {
			return nil
		}
	}
	display := getenv("DISPLAY")
	host, screen, _ := strings.Cut(display, ":")
	number, _, _ := strings.Cut(screen, ".")
	switch {
	case display == "":
		return bridge.Errorf(bridge.Unavailable, "there is no display to show a window on")
	case host != "" && host != "unix": // forwarded from elsewhere: whoever set it knows
		return nil
	case answers("/tmp/.X11-unix/X"+number) || answers("@/tmp/.X11-unix/X"+number):
		return nil
	}
	return bridge.Errorf(bridge.Unavailable, "the display %s does not answer, so no window can be shown", display)
}

func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second) //nolint:noctx // it is asked once, before anything runs
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}
