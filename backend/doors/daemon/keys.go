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

// keys gives the keys of the daemon's dashboard. All are kept in memory: whoever reads
// the home finds none (SEC-01).
type keys struct{ *Daemon }

// Ticket returns an address that opens the dashboard once, within 30 seconds.
func (k keys) Ticket() string { return k.URL() + guard.LaunchPath(k.tickets.Issue()) }

// Entry returns what to start the owner's browser with. Every user of this computer can
// read a command line, so there is no key in it: where the system tells whose a
// connection is, it is an address that lets this user's next browser in; elsewhere it is
// a file that only the owner can read and that leads to a ticket. Entry fails with
// Storage when that file cannot be written.
func (k keys) Entry() (string, error) {
	if runtime.GOOS == "linux" {
		k.tickets.Expect()
		return k.URL() + guard.EntryPath, nil
	}
	return k.entryFile()
}

// entryPage leads to the launch link, by a script or by a click.
const entryPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bridge</title>` +
	`<meta http-equiv="refresh" content="0; url=%[1]s"></head><body><p><a href="%[1]s">Open Bridge</a></p></body></html>` + "\n"

// entryLife is how long the file of a ticket stays: as long as the ticket is good.
const entryLife = 30 * time.Second

func (k keys) entryFile() (string, error) {
	path := filepath.Join(k.opts.Home.Dir(), config.EntryPage)
	page := fmt.Sprintf(entryPage, html.EscapeString(k.Ticket()))
	if err := disk.WriteAtomic(path, []byte(page), disk.PrivateFile); err != nil {
		return "", bridge.WithCause(bridge.Storage, err, "the page that opens the dashboard cannot be written")
	}
	time.AfterFunc(entryLife, func() { _ = os.Remove(path) }) // the ticket in it is good for nothing by then
	return path, nil
}

// LaunchLink returns an address that opens the dashboard any number of times, until the
// daemon ends. With renew it first ends all links, tickets and cookies of before; it then
// fails with Storage when the new launch secret cannot be written.
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

// LaunchURL returns an address that opens the dashboard any number of times, until the
// daemon ends. It fails with Storage when the launch secret cannot be read, without which
// nobody gets a cookie.
func (d *Daemon) LaunchURL() (string, error) {
	if _, err := d.opts.Home.LaunchSecret(); err != nil {
		return "", err
	}
	return d.URL() + guard.LaunchPath(d.tickets.Link()), nil
}

// EntryURL returns what to start the owner's browser with, as [keys.Entry] does.
func (d *Daemon) EntryURL() (string, error) { return keys{d}.Entry() }

// delegatedJobs returns the jobs for the dashboard, and what tells which of them a
// connection comes from; both nil where there are none.
func delegatedJobs(d *Daemon) (runs.Jobs, func(net.Conn) (string, error)) {
	if d.jobs == nil {
		return nil, nil // a nil pointer in the interface would not be nil
	}
	return d.jobs, d.jobs.JobOfConn
}
