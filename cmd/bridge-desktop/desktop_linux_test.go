package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// These tests drive the built desktop app: BRIDGE_DESKTOP_BIN names it, with
// bridge beside it, as the stage "desktop" of `go run ./build test` does.
func desktopApp(t *testing.T) string {
	t.Helper()
	path := os.Getenv("BRIDGE_DESKTOP_BIN")
	if path == "" {
		t.Skip("BRIDGE_DESKTOP_BIN names no desktop app: go run ./build test desktop")
	}
	return path
}

// desk is a home with everything around it that the app needs.
type desk struct {
	t      *testing.T
	home   config.Home
	env    []string
	screen *screen
	bus    *bus
}

func newDesk(t *testing.T, withTray bool) *desk {
	t.Helper()
	desktopApp(t)
	dir, err := os.MkdirTemp("", "b") // t.TempDir is too long for a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home, err := config.ResolveHome(filepath.Join(dir, "h"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, home: home, screen: newScreen(t), bus: newBus(t, withTray)}
	for _, name := range []string{"user", "run"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "user"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"DISPLAY=" + d.screen.display, "DBUS_SESSION_BUS_ADDRESS=" + d.bus.address,
		"BRIDGE_HOME=" + home.Dir(), "BRIDGE_PORT=0", "NO_AT_BRIDGE=1",
	}
	return d
}

// set changes the environment of the programs that are started from now on.
func (d *desk) set(name, value string) { d.env = append(d.env, name+"="+value) }

// program is one that the test started.
type program struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
	output output
}

// output is what a program printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (d *desk) start(path string, args ...string) *program {
	d.t.Helper()
	p := &program{cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Env = d.env
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.WaitDelay = time.Second // what it started may hold its output
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	d.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if d.t.Failed() {
			d.t.Logf("%s printed:\n%s", filepath.Base(path), p.output.String())
		}
	})
	return p
}

func (d *desk) app(args ...string) *program { return d.start(desktopApp(d.t), args...) }

func (d *desk) bridge(args ...string) *program {
	return d.start(filepath.Join(filepath.Dir(desktopApp(d.t)), "bridge"), args...)
}

// ends waits for the program's end, which must be in order.
func (p *program) ends(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testkit.Patience):
		t.Fatal("the program does not end")
	}
	if p.err != nil {
		t.Fatalf("the program ended with %v", p.err)
	}
}

func (p *program) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.ends(t)
}

// remains lists the living processes that were started for this home.
func (d *desk) remains() []string {
	var found []string
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environment, []byte("BRIDGE_HOME="+d.home.Dir()+"\x00")) {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
			found = append(found, strings.TrimSpace(string(name)))
		}
	}
	return found
}

func (d *desk) dial(role api.Role) (*ipc.Client, error) {
	token, err := d.home.ExistingToken()
	if err != nil {
		return nil, err
	}
	target := ipc.Target{Socket: d.home.Socket(), Token: string(token)}
	return ipc.Dial(d.t.Context(), target, ipc.Hello{Role: role, PID: os.Getpid(), Version: "test"})
}

// broker waits for a broker that is as asked for, and returns what it says.
func (d *desk) broker(is func(api.Status) bool) (status api.Status) {
	d.t.Helper()
	until(d.t, "a broker as asked for answers", func() bool {
		client, err := d.dial(api.RoleOwner)
		if err != nil {
			return false
		}
		defer client.Close()
		status, err = client.Status(d.t.Context())
		return err == nil && is(status)
	})
	return status
}

func anyBroker(api.Status) bool { return true }

// join connects a session.
func (d *desk) join(name string) *ipc.Client {
	d.t.Helper()
	client, err := d.dial(api.RoleSession)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { client.Close() })
	if _, err := client.Register(d.t.Context(), api.Register{Kind: bridge.Claude, Name: name, SessionID: "host-" + name, Cwd: "/"}); err != nil {
		d.t.Fatal(err)
	}
	return client
}

// connections counts the connections that are open to the dashboard's port.
func connections(t *testing.T, url string) int {
	t.Helper()
	var port int
	if _, err := fmt.Sscanf(url, "http://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	const established = "01"
	count := 0
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) && fields[3] == established {
			count++
		}
	}
	return count
}

const manyColours = 20

// awaitPage waits until the window shows the dashboard.
func (d *desk) awaitPage(url string) {
	d.t.Helper()
	until(d.t, "the window is shown", func() bool { return d.screen.shows(d.t) })
	until(d.t, "the page is connected", func() bool { return connections(d.t, url) > 0 })
	until(d.t, "the page is drawn", func() bool { return d.screen.colours(d.t) > manyColours })
}

// awaitStill waits until the picture has stopped changing by itself.
func (d *desk) awaitStill() {
	d.t.Helper()
	until(d.t, "the picture is still", func() bool {
		before := d.screen.picture(d.t)
		pause(500 * time.Millisecond)
		return !d.screen.changedPicture(d.t, before)
	})
}

func TestDSK_01_TheWindowAndLocalhostShowTheSameLiveDashboard(t *testing.T) {
	d := newDesk(t, true)
	app := d.app()
	status := d.broker(func(s api.Status) bool { return s.Host == "desktop" })
	if status.PID != app.cmd.Process.Pid {
		t.Errorf("the broker is process %d, not the app %d", status.PID, app.cmd.Process.Pid)
	}
	d.awaitPage(status.URL)
	answer, err := http.Get(status.URL)
	if err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("localhost without a ticket: %v, %v", answer, err)
	}
	// Nothing touches the window: what changes on it came as an event.
	d.awaitStill()
	before := d.screen.picture(t)
	d.join("alpha")
	until(t, "the page shows the new session", func() bool { return d.screen.changedPicture(t, before) })

	t.Run("DSK-01 it ends in order and leaves no process", func(t *testing.T) {
		app.terminate(t)
		until(t, "all its processes are gone", func() bool { return len(d.remains()) == 0 })
		if _, err := d.dial(api.RoleOwner); bridge.CodeOf(err) != bridge.Unavailable {
			t.Errorf("a broker is left: %v", err)
		}
	})
}

// The key that opens the dashboard is on no command line, in no environment and
// in no log.
func TestAUT_04_TheTicketIsSeenByNobody(t *testing.T) {
	d := newDesk(t, true)
	d.app()
	status := d.broker(anyBroker)
	d.awaitPage(status.URL)
	for _, what := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(status.URL+"/launch")) {
				t.Errorf("%s holds a launch link: %q", file, text)
			}
		}
	}
	log, err := os.ReadFile(d.home.Log())
	if err != nil || bytes.Contains(log, []byte("key=")) {
		t.Errorf("the log holds a launch link (%v): %s", err, log)
	}
	answer, err := http.Get(status.URL + "/launch?key=used")
	if err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a wrong ticket opened the dashboard: %v, %v", answer, err)
	}
}

func TestDSK_02_ClosingHidesAndASecondStartRaises(t *testing.T) {
	d := newDesk(t, true)
	app := d.app()
	until(t, "the icon is in the tray", func() bool { return d.bus.owner() != "" })
	d.awaitPage(d.broker(anyBroker).URL)
	d.screen.closeWindow(t)
	until(t, "the window is hidden", func() bool { return !d.screen.shows(t) })
	d.broker(func(s api.Status) bool { return s.PID == app.cmd.Process.Pid }) // it goes on
	d.app().ends(t)
	until(t, "the window is back", func() bool { return d.screen.shows(t) })
	d.screen.closeWindow(t)
	until(t, "the window is hidden again", func() bool { return !d.screen.shows(t) })
	d.app("--hidden").ends(t)
	if d.screen.shows(t) {
		t.Error("a hidden second start showed the window")
	}
	d.bus.choose(t, "Open Bridge")
	until(t, "the menu brings the window back", func() bool { return d.screen.shows(t) })
	d.bus.choose(t, "Quit Bridge")
	app.ends(t)
	until(t, "all its processes are gone", func() bool { return len(d.remains()) == 0 })
}

func TestDSK_02_TheMenuOpensTheBrowser(t *testing.T) {
	d := newDesk(t, true)
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	browser := "#!/bin/sh\necho \"$1\" > " + opened + ".new && mv " + opened + ".new " + opened + "\n"
	if err := testkit.WriteProgram(filepath.Join(dir, "xdg-open"), []byte(browser), 0o700); err != nil {
		t.Fatal(err)
	}
	d.set("PATH", dir+":"+os.Getenv("PATH"))
	d.app("--hidden")
	until(t, "the icon is in the tray", func() bool { return d.bus.owner() != "" })
	d.bus.choose(t, "Open in browser")
	var link []byte
	until(t, "the browser is started", func() (started bool) {
		var err error
		link, err = os.ReadFile(opened)
		return err == nil
	})
	answer, err := http.Get(strings.TrimSpace(string(link)))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the link %s: %v, %v", link, answer, err)
	}
}

func TestDSK_02_WithoutATrayClosingEnds(t *testing.T) {
	d := newDesk(t, false)
	app := d.app()
	d.awaitPage(d.broker(anyBroker).URL)
	d.screen.closeWindow(t)
	app.ends(t)
	if !strings.Contains(app.output.String(), "nothing here shows tray icons") {
		t.Errorf("it did not say that there is no tray: %s", app.output.String())
	}
}

func TestDSK_02_TheIconShowsWhatIsTheCase(t *testing.T) {
	d := newDesk(t, true)
	d.app("--hidden")
	until(t, "the icon is in the tray", func() bool { return d.bus.owner() != "" })
	says := func(words string) {
		t.Helper()
		until(t, "the tooltip says "+words, func() bool { return strings.Contains(d.bus.tooltip(t), words) })
	}
	says("OK, no sessions")
	until(t, "the icon of good days is shown", func() bool { return len(d.bus.icon(t)) > 0 })
	well := d.bus.icon(t)

	d.join("alpha")
	says("OK, 1 session")
	hook, err := d.dial(api.RoleHook)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hook.Close() })
	call := session.HookCall{Kind: bridge.Claude, Event: session.EventPrompt, SessionID: "host-alpha", Cwd: "/"}
	if _, err := hook.Hook(context.Background(), call); err != nil {
		t.Fatal(err)
	}
	says("1 of 1 session at work")
	until(t, "its icon is another", func() bool { return !bytes.Equal(well, d.bus.icon(t)) })

	jobs := filepath.Join(d.home.Dir(), "jobs.json")
	if err := os.WriteFile(jobs, []byte("{ no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	says("The storage has 1 error. jobs.json:")
	if _, there := d.bus.find(t, "The storage has 1 error"); !there {
		t.Error("the menu does not name what needs the owner")
	}
	if err := os.Remove(jobs); err != nil {
		t.Fatal(err)
	}
	says("at work")

	if _, there := d.bus.find(t, "No backup yet"); !there {
		t.Error("the menu does not say that there is no backup")
	}
	d.bus.choose(t, "Back up now")
	until(t, "the backup's result is shown", func() bool { _, there := d.bus.find(t, "Backed up and verified"); return there })
	until(t, "the backup's age is shown", func() bool { _, there := d.bus.find(t, "Last backup: just now"); return there })
	if sets, err := os.ReadDir(d.home.Backups()); err != nil || len(sets) != 1 {
		t.Errorf("backups: %v, %v, want one", sets, err)
	}
	d.bus.choose(t, "Check storage now")
	until(t, "the check's result is shown", func() bool { _, there := d.bus.find(t, "Checked: healthy"); return there })
}

func TestDSK_04_TheMenuSwitchesTheStartAtLogin(t *testing.T) {
	d := newDesk(t, true)
	d.app("--hidden")
	until(t, "the icon is in the tray", func() bool { return d.bus.owner() != "" })
	entries := filepath.Join(filepath.Dir(d.home.Dir()), "user", ".config", "autostart", "*.desktop")
	switched := func(on bool) {
		t.Helper()
		d.bus.choose(t, "Start at login")
		until(t, "the menu shows the switch", func() bool { e, _ := d.bus.find(t, "Start at login"); return e.checked == on })
	}
	switched(true)
	files, _ := filepath.Glob(entries)
	if len(files) != 1 {
		t.Fatalf("autostart entries: %v", files)
	}
	text, err := os.ReadFile(files[0])
	want := fmt.Sprintf("Exec=%q \"--hidden\" \"--home\" %q\n", desktopApp(t), d.home.Dir())
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the entry is %s (%v), want %s", text, err, want)
	}
	switched(false)
	if files, _ = filepath.Glob(entries); len(files) != 0 {
		t.Errorf("left over: %v", files)
	}
}

func TestDSK_07_ANoticeIsShownOnceAndLeadsToItsPlace(t *testing.T) {
	d := newDesk(t, true)
	d.app("--hidden")
	status := d.broker(anyBroker)
	until(t, "the icon is in the tray", func() bool { return d.bus.owner() != "" })
	jobs := filepath.Join(d.home.Dir(), "jobs.json")
	damage := func(how string) { // at once: an empty file in between would be another finding
		t.Helper()
		if err := disk.WriteAtomic(jobs, []byte(how), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage("{ no JSON")
	until(t, "a notice is shown", func() bool { return len(d.bus.shown()) > 0 })
	damage("{ still no JSON")
	d.bus.choose(t, "Check storage now")
	until(t, "it was looked at again", func() bool { _, there := d.bus.find(t, "Checked: 1 error"); return there })
	want := notice{"Bridge's storage needs attention", "Open Bridge to see the finding."}
	if got := d.bus.shown(); len(got) != 1 || got[0] != want {
		t.Errorf("notices %v, want one: %v", got, want)
	}
	d.bus.click(t, 1)
	d.awaitPage(status.URL)

	t.Run("DSK-07 none when switched off", func(t *testing.T) {
		if _, err := d.home.UpdateConfig(func(c *config.Config) error { c.Desktop.Notifications = false; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(jobs); err != nil {
			t.Fatal(err)
		}
		until(t, "all is OK", func() bool { return strings.Contains(d.bus.tooltip(t), "OK, ") })
		damage("{ once more")
		until(t, "the finding is shown", func() bool { return strings.Contains(d.bus.tooltip(t), "1 error") })
		if got := d.bus.shown(); len(got) != 1 {
			t.Errorf("notices %v although they are off", got)
		}
	})
}

func TestDSK_07_AFailedBackupIsSaid(t *testing.T) {
	d := newDesk(t, true)
	d.app("--hidden")
	until(t, "the icon is in the tray", func() bool { return d.bus.owner() != "" })
	d.broker(anyBroker)
	if err := os.WriteFile(d.home.Backups(), nil, 0o600); err != nil { // no folder can be made there
		t.Fatal(err)
	}
	d.bus.choose(t, "Back up now")
	until(t, "the menu says so", func() bool { _, there := d.bus.find(t, "Backing up failed at"); return there })
	failed := notice{"A backup or check failed", "Open Bridge to see the storage."}
	until(t, "a notice says so", func() bool { return slices.Contains(d.bus.shown(), failed) })
}

// Nothing outlives an app that was killed, and the next one finds everything free.
func TestDSK_01_AKilledAppLeavesNothing(t *testing.T) {
	d := newDesk(t, true)
	app := d.app()
	d.awaitPage(d.broker(anyBroker).URL)
	if err := app.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "all its processes are gone", func() bool { return len(d.remains()) == 0 })
	next := d.app()
	d.awaitPage(d.broker(func(s api.Status) bool { return s.PID == next.cmd.Process.Pid }).URL)
	next.terminate(t)
}

// The app is a client of a broker that runs already, takes over when that one
// dies, and its window follows to the new address.
func TestDSK_01_TheWindowSurvivesItsBroker(t *testing.T) {
	d := newDesk(t, true)
	serve := d.bridge("serve")
	first := d.broker(anyBroker)
	app := d.app()
	d.awaitPage(first.URL)
	if now := d.broker(anyBroker); now.Host != "serve" || now.PID != serve.cmd.Process.Pid {
		t.Fatalf("the broker is %+v, want the one that ran already", now)
	}
	if err := serve.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second := d.broker(func(s api.Status) bool { return s.Host == "desktop" && s.PID == app.cmd.Process.Pid })
	until(t, "the window shows the new dashboard", func() bool { return connections(t, second.URL) > 0 })
	d.awaitPage(second.URL)
}

// A broker that dies while its page opens leaves the window at none of Bridge's pages:
// "connection refused" is no place to stay, whatever address the next broker has.
func TestDSK_01_TheWindowSurvivesABrokerThatDiesAsItsPageOpens(t *testing.T) {
	for _, next := range []string{"at the same address", "at another address"} {
		t.Run("DSK-01 the next one is "+next, func(t *testing.T) {
			d := newDesk(t, true)
			serve := d.bridge("serve")
			first := d.broker(anyBroker)
			if next == "at the same address" {
				d.set("BRIDGE_PORT", first.URL[strings.LastIndex(first.URL, ":")+1:])
			}
			d.whenTold("/launch?key=", func() { // from here on it answers nobody
				if err := serve.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
			})
			app := d.app()
			until(t, "its page opens", func() bool { return connections(t, first.URL) > 0 })
			if err := serve.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			second := d.broker(func(s api.Status) bool { return s.PID == app.cmd.Process.Pid })
			if same := second.URL == first.URL; same != (next == "at the same address") {
				t.Fatalf("the next one is at %s, the first was at %s", second.URL, first.URL)
			}
			d.awaitPage(second.URL)
			d.awaitStill()
			before := d.screen.picture(t)
			d.join("alpha")
			until(t, "the page shows the new session", func() bool { return d.screen.changedPicture(t, before) })
		})
	}
}

// whenTold calls do when a broker's answer holds that text, before the answer arrives: it
// stands between the home's socket and the broker, until the next broker takes the place.
func (d *desk) whenTold(text string, do func()) {
	d.t.Helper()
	socket, moved := d.home.Socket(), d.home.Socket()+".moved"
	if err := os.Rename(socket, moved); err != nil {
		d.t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		d.t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // it may be another's by then
	d.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("unix", moved)
			if err != nil {
				client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(broker, client)
				broker.Close()
			}()
			go func() {
				defer client.Close()
				answer := make([]byte, 1<<16) // more than what is looked for takes
				for {
					n, err := broker.Read(answer)
					if bytes.Contains(answer[:n], []byte(text)) {
						do()
					}
					if _, failed := client.Write(answer[:n]); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}()
}

// What a desktop may lack is said in one sentence and takes nothing else away.
func TestDSK_01_WhatIsMissing(t *testing.T) {
	t.Run("DSK-01 no display: the link is printed and the broker runs", func(t *testing.T) {
		d := newDesk(t, false)
		d.set("DISPLAY", "")
		app := d.app()
		until(t, "the link is printed", func() bool { return strings.Contains(app.output.String(), "bridge: ready http://127.0.0.1:") })
		if !strings.Contains(app.output.String(), "there is no display to show a window on") {
			t.Errorf("it printed %s", app.output.String())
		}
		_, link, _ := strings.Cut(app.output.String(), "bridge: ready ")
		answer, err := http.Get(strings.TrimSpace(link))
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("the link: %v, %v", answer, err)
		}
		app.terminate(t)
	})
	t.Run("DSK-01 a dead display", func(t *testing.T) {
		d := newDesk(t, false)
		d.set("DISPLAY", ":9999")
		app := d.app()
		until(t, "it says so", func() bool { return strings.Contains(app.output.String(), "the display :9999 does not answer") })
		d.broker(func(s api.Status) bool { return s.Host == "desktop" })
		app.terminate(t)
	})
	t.Run("DSK-01 no session bus: the window works", func(t *testing.T) {
		d := newDesk(t, false)
		d.set("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
		app := d.app()
		d.awaitPage(d.broker(anyBroker).URL)
		if !strings.Contains(app.output.String(), "there is no session bus") {
			t.Errorf("it printed %s", app.output.String())
		}
		app.terminate(t)
	})
	t.Run("DSK-01 a port that is taken: a free one, and the tray says so", func(t *testing.T) {
		d := newDesk(t, true)
		other := newDesk(t, false)
		other.bridge("serve")
		taken := other.broker(anyBroker).URL
		d.set("BRIDGE_PORT", taken[strings.LastIndex(taken, ":")+1:])
		d.app()
		status := d.broker(func(s api.Status) bool { return s.Host == "desktop" })
		d.awaitPage(status.URL)
		until(t, "the menu says where the dashboard is", func() bool { _, there := d.bus.find(t, "The dashboard is at 127.0.0.1:"); return there })
	})
	t.Run("DSK-01 no display and a home that is no folder: one sentence, and the end", func(t *testing.T) {
		home := filepath.Join(t.TempDir(), "h")
		if err := os.WriteFile(home, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		app := exec.CommandContext(t.Context(), desktopApp(t))
		app.Env = append(os.Environ(), "BRIDGE_HOME="+home, "DISPLAY=", "WAYLAND_DISPLAY=")
		output, err := app.CombinedOutput()
		if app.ProcessState.ExitCode() != 2 || strings.Count(string(output), "\n") != 1 || !strings.Contains(string(output), "is a file: remove it") {
			t.Errorf("%v, it printed %s", err, output)
		}
	})
	t.Run("DSK-01 a home that is no folder: the window says so, and goes on once it is", func(t *testing.T) {
		d := newDesk(t, true)
		if err := os.WriteFile(d.home.Dir(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		app := d.app()
		until(t, "the window is shown", func() bool { return d.screen.shows(t) })
		until(t, "the tray says so", func() bool { return d.bus.owner() != "" && strings.Contains(d.bus.tooltip(t), "is a file: remove it") })
		if err := os.Remove(d.home.Dir()); err != nil {
			t.Fatal(err)
		}
		d.awaitPage(d.broker(anyBroker).URL)
		app.terminate(t)
	})
}

func TestDSK_01_AnArgumentIsRefused(t *testing.T) {
	app := exec.CommandContext(t.Context(), desktopApp(t), "serve")
	app.Env = append(os.Environ(), "BRIDGE_HOME="+filepath.Join(t.TempDir(), "h"))
	output, err := app.CombinedOutput()
	if app.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), `was given "serve"`) {
		t.Errorf("%v, it printed %s", err, output)
	}
}

// loseStore makes the home one that has lost its store beside a good snapshot.
func (d *desk) loseStore() {
	d.t.Helper()
	broker := d.bridge("serve")
	d.broker(anyBroker)
	d.bridge("doctor", "--backup").ends(d.t)
	broker.terminate(d.t)
	if err := os.Remove(d.home.DB()); err != nil {
		d.t.Fatal(err)
	}
}

func TestSTO_17_TheAppMakesNoStoreInALostOnesPlace(t *testing.T) {
	t.Run("STO-17 no display: the sentence, and the end", func(t *testing.T) {
		d := newDesk(t, false)
		d.loseStore()
		serve := d.bridge("serve")
		<-serve.ended
		_, sentence, _ := strings.Cut(serve.output.String(), "bridge: ")
		d.set("DISPLAY", "")
		app := d.app()
		select {
		case <-app.ended:
		case <-time.After(testkit.Patience):
			t.Fatal("it does not end")
		}
		if app.cmd.ProcessState.ExitCode() != 3 || !strings.Contains(sentence, " is lost: ") || !strings.HasSuffix(app.output.String(), "bridge-desktop: "+sentence) {
			t.Errorf("%v, it printed %s", app.err, app.output.String())
		}
		if _, err := os.Stat(d.home.DB()); err == nil {
			t.Error("there is a store")
		}
	})
	t.Run("STO-17 the window and the tray say what to do, and go on once it is done", func(t *testing.T) {
		d := newDesk(t, true)
		d.loseStore()
		app := d.app()
		until(t, "the window is shown", func() bool { return d.screen.shows(t) })
		until(t, "the tray says so", func() bool {
			return d.bus.owner() != "" && strings.Contains(d.bus.tooltip(t), "bridge doctor --restore snapshot-")
		})
		if _, err := os.Stat(d.home.DB()); err == nil {
			t.Error("there is a store")
		}
		d.bridge("doctor", "--restore", "latest", "--yes").ends(t)
		d.awaitPage(d.broker(anyBroker).URL)
		app.terminate(t)
	})
}
