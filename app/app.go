// Package app is Bridge on a desktop: a window that shows the localhost
// dashboard, an icon in the tray that tells at a glance whether anything needs
// the owner, notices, and the start at login. The process carries the home's
// broker when none runs yet, and is a client of the running one otherwise.
//
// The window is fed by the dashboard's own server and by nothing else: it opens
// on a tiny page that replaces itself through a one-time ticket, got over the
// local socket, by the address that a browser uses (AUT-04). What the tray shows
// is one value, Status, which a pure function makes of Facts.
package app

import (
	"io"
	"time"

	"bridge/backend/doors/daemon"
)

// Options says what to run. All fields are required.
type Options struct {
	// Daemon is how a broker of this build is put together: its home, page,
	// version, log, clock and browser are the app's, too.
	Daemon daemon.Options
	// Hidden starts without showing the window, as at login.
	Hidden bool
	// Stdout and Stderr are for starts from a terminal.
	Stdout, Stderr io.Writer
}

// now is the app's clock.
func (o Options) now() time.Time { return o.Daemon.Now() }
