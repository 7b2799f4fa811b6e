// Package app is Bridge on a desktop: a window that shows the localhost
// dashboard, an icon in the tray that shows whether anything needs the owner,
// notices, and the start at login. The process runs the home's broker if none
// runs yet, and is a client of the running one otherwise.
//
// The window shows only pages of the dashboard's own server. It opens on a small
// page that goes to the dashboard's address with a one-time ticket, which it gets
// over the local socket (AUT-04). The tray shows one value, [Status], which a pure
// function makes of [Facts].
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
