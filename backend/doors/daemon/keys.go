package daemon

import (
	"fmt"
	"html"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// keys issues the keys of the daemon's dashboard. They are only in memory, so a
// reader of the home finds none (SEC-01).
type keys struct{ *Daemon }

// Ticket returns an address that opens the dashboard once, within 30 seconds.
func (k keys) Ticket() string { return k.URL() + guard.LaunchPath(k.tickets.Issue()) }

// Entry returns an address or a file for the owner's browser. Every user can read a
// command line, so it contains no key. On a system that reports the user of a
// connection, it is an address that admits this user's next browser. Elsewhere it
// is a file that only the owner can read and that leads to a ticket. It fails with
// Storage if that file cannot be written.
func (k keys) Entry() (string, error) {
	if runtime.GOOS == "linux" {
		k.tickets.Expect()
		return k.URL() + guard.EntryPath, nil
	}
	return k.entryFile()
}

// entryPage leads to the launch link, by redirect or by a click.
const entryPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bridge</title>` +
	`<meta http-equiv="refresh" content="0; url=%[1]s"></head><body><p><a href="%[1]s">Open Bridge</a></p></body></html>` + "\n"

// entryLife is the lifetime of a ticket's file, the same as the ticket's.
const entryLife = 30 * time.Second

func (k keys) entryFile() (string, error) {
	path := filepath.Join(k.opts.Home.Dir(), config.EntryPage)
	page := fmt.Sprintf(entryPage, html.EscapeString(k.Ticket()))
	if err := disk.WriteAtomic(path, []byte(page), disk.PrivateFile); err != nil {
		return "", bridge.WithCause(bridge.Storage, err, "the page that opens the dashboard cannot be written")
	}
	time.AfterFunc(entryLife, func() { _ = os.Remove(path) }) // its ticket has expired by then
	return path, nil
}

// LaunchLink returns an address that opens the dashboard any number of times, until
// the daemon ends. With renew it first revokes all earlier links, tickets and
// cookies. It then fails with Storage if the new launch secret cannot be written.
func (k keys) LaunchLink(renew bool) (string, error) {
	if renew {
		if err := (config.BrowsersFile{Home: k.opts.Home}).RenewSecret(); err != nil {
			return "", err
		}
		k.tickets.Renew()
		k.pages.EndCookies()
	}
	return k.LaunchURL()
}

// LaunchURL returns an address that opens the dashboard any number of times, until
// the daemon ends. It fails with Storage if the launch secret cannot be read,
// because cookies need it.
func (d *Daemon) LaunchURL() (string, error) {
	if _, err := d.opts.Home.LaunchSecret(); err != nil {
		return "", err
	}
	return d.URL() + guard.LaunchPath(d.tickets.Link()), nil
}

// EntryURL returns what [keys.Entry] returns, and fails as it does.
func (d *Daemon) EntryURL() (string, error) { return keys{d}.Entry() }

// delegatedJobs returns the jobs for the dashboard, and the function that finds the
// job of a connection; both nil without jobs.
func delegatedJobs(d *Daemon) (runs.Jobs, func(net.Conn) (string, error)) {
	if d.jobs == nil {
		return nil, nil // a nil pointer in the interface would not be nil
	}
	return d.jobs, d.jobs.JobOfConn
}
