//go:build linux || windows

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// desktop is the running app.
type desktop struct {
	opts      Options
	link      *link
	storage   *storage
	session   *session // nil without a session bus
	autostart Autostart
	window    *window // its run shows it
	tray      *tray   // nil without a session
	announcer announcer
	since     time.Time        // when it began
	news      lifecycle.Signal // gather the facts anew
	signals   chan os.Signal
	restarted lifecycle.Signal // the app was started again
	stop      context.CancelFunc
	parts     sync.WaitGroup
	claimed   *instance // nil while the home cannot be used
}

// Run is the app from start to end. It must be called on the main goroutine.
// Where another app serves this home it is shown, and Run returns at once.
func Run(ctx context.Context, opts Options) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &desktop{
		opts: opts, stop: stop, since: opts.now(),
		restarted: lifecycle.NewSignal(), news: lifecycle.NewSignal(), signals: make(chan os.Signal, 1),
	}
	if d.claimed, err = claim(ctx, opts.Daemon, opts.Hidden, d.restarted); err != nil {
		if errors.Is(err, errShown) {
			return nil
		}
		// Without a window the retries would be invisible.
		if bridge.CodeOf(err) == bridge.Unavailable || screenProblem(opts.Daemon.Getenv) != nil {
			return err
		}
		opts.warn(err) // the window says it too
	}
	defer func() { err = errors.Join(err, d.release()) }()
	if err := d.prepare(); err != nil {
		return err
	}
	d.begin(ctx)
	err = d.show(ctx)
	stop()
	d.parts.Wait()
	signal.Stop(d.signals)
	return err
}

// release gives up what is held until the very end.
func (d *desktop) release() error {
	if d.session != nil {
		_ = d.session.Close() // it may have ended before us
	}
	if d.claimed == nil {
		return nil
	}
	return d.claimed.Close()
}

// warn says on the terminal and in the log what is not as it should be.
func (o Options) warn(err error) {
	fmt.Fprintf(o.Stderr, "bridge-desktop: %s\n", err)
	o.Daemon.Log.Warn("the desktop app must do without something", "err", err)
}

// prepare puts the parts together.
func (d *desktop) prepare() (err error) {
	if d.autostart, err = NewAutostart(d.opts.Daemon.Home); err != nil {
		return err
	}
	d.opts.Daemon.Login = loginSwitch{d.autostart, d.changed}
	d.link, d.storage = newLink(d.opts.Daemon, d.changed, d.opts.warn), newStorage(d.opts.Daemon, d.changed)
	d.window = &window{link: d.link, hidden: d.opts.Hidden, keeps: d.hasTray, began: d.catchSignals}
	if d.session, err = openSession(); err != nil {
		d.opts.warn(err)
	}
	return nil
}

// hasTray reports whether the owner can get the window back from the tray.
func (d *desktop) hasTray() bool { return d.session != nil && d.session.hasTray() }

// changed asks for a new look at the facts.
func (d *desktop) changed() {
	d.news.Notify()
}

// catchSignals makes requests to end ours alone. It is called again once Wails is
// there, which answers the first signal by itself, as if the window were closed,
// and no other.
func (d *desktop) catchSignals() {
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signal.Notify(d.signals, os.Interrupt, syscall.SIGTERM)
}

// begin starts everything that needs no window.
func (d *desktop) begin(ctx context.Context) {
	d.catchSignals()
	d.parts.Go(func() { d.link.run(ctx) })
	d.parts.Go(func() { d.storage.run(ctx) })
	d.parts.Go(func() { d.listen(ctx) })
	if d.claimed == nil {
		d.parts.Go(func() { d.claimLater(ctx) })
	}
}

// claimLater takes the home once it can be used. Should another app have been
// quicker, this one leaves it to that.
func (d *desktop) claimLater(ctx context.Context) {
	for ipc.Pause(ctx, prepareAgain) {
		claimed, err := claim(ctx, d.opts.Daemon, true, d.restarted)
		if errors.Is(err, errShown) {
			d.quit()
			return
		}
		if err == nil {
			d.claimed = claimed
			return
		}
	}
}

// listen serves a second start, clicks on notices and requests to end.
func (d *desktop) listen(ctx context.Context) {
	var clicks <-chan string
	if d.session != nil {
		clicks = d.session.clicks
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.restarted:
			d.open("")
		case place := <-clicks:
			d.open(place)
		case <-d.signals:
			d.quit()
		}
	}
}

// show runs the window, or without a screen what is left, until the app ends.
func (d *desktop) show(ctx context.Context) error {
	problem := screenProblem(d.opts.Daemon.Getenv)
	if problem == nil || d.hasTray() {
		if err := d.startTray(); err != nil {
			return err
		}
		defer d.closeTray()
	}
	d.parts.Go(func() { d.followFacts(ctx) })
	if problem == nil && d.session != nil && !d.hasTray() {
		d.opts.warn(errors.New("nothing here shows tray icons: until something does, closing the window ends Bridge"))
	}
	if problem == nil {
		problem = d.window.run()
	}
	if problem == nil {
		return nil
	}
	d.opts.warn(problem)
	return d.withoutWindow(ctx)
}

func (d *desktop) startTray() (err error) {
	if d.session == nil {
		return nil // the library would end the process
	}
	d.tray, err = startTray(actions{
		open: func() { d.open("") }, openAt: d.open, browse: d.browse, login: d.switchLogin, quit: d.quit,
		backUp: func() { d.storage.ask(backUp) }, check: func() { d.storage.ask(checkNow) },
	}, Describe(Facts{Starting: true}, d.opts.now()))
	return err
}

func (d *desktop) closeTray() {
	if d.tray != nil {
		d.tray.close()
	}
}

// connectPatience is how long a start without a window waits for the broker.
const connectPatience = 10 * time.Second

// withoutWindow keeps Bridge useful where no window can be shown: the tray opens
// the browser, and without a tray the link is printed. Where another process is
// the broker and there is no tray either, nothing is left to do here.
func (d *desktop) withoutWindow(ctx context.Context) error {
	reaching, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	client, err := d.link.reach(reaching)
	if ctx.Err() != nil {
		return nil // told to end meanwhile
	}
	if err != nil {
		return err
	}
	if d.tray == nil {
		link, err := client.LaunchLink(ctx, api.LaunchArgs{})
		if ctx.Err() != nil {
			return nil // told to end meanwhile
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(d.opts.Stdout, "bridge: ready %s\n", link)
		if client.Welcome().PID != os.Getpid() {
			return nil
		}
	} else if !d.opts.Hidden {
		d.browse()
	}
	<-ctx.Done()
	return nil
}

// open shows the dashboard, at a place when one is given.
func (d *desktop) open(place string) {
	if screenProblem(d.opts.Daemon.Getenv) != nil {
		d.browse()
		return
	}
	d.window.show(place)
}

// browse opens the dashboard in the owner's browser.
func (d *desktop) browse() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
		defer cancel()
		entry, err := d.link.entry(ctx)
		if err == nil {
			err = d.opts.Daemon.OpenLink(context.Background(), entry) // it may last as long as the browser
		}
		if err != nil {
			d.storage.tell(func(known *Storage) { known.Result = "The browser could not be opened: " + err.Error() })
		}
	}()
}

// switchLogin switches the start at login and shows what is then in force.
func (d *desktop) switchLogin() {
	if err := d.autostart.Set(!d.autostart.Enabled()); err != nil {
		d.storage.tell(func(known *Storage) { known.Result = err.Error() })
	}
	d.changed()
}

// endPatience is how long an end in order may take.
const endPatience = 10 * time.Second

// quit ends the app in order, and at last without: what is stored is safe at any
// moment.
func (d *desktop) quit() {
	time.AfterFunc(endPatience, func() { os.Exit(1) })
	d.window.quit()
	d.stop()
}

// pace is the shortest time between two looks at the facts.
const pace = 200 * time.Millisecond

// followFacts shows every change, and each minute how old things are.
func (d *desktop) followFacts(ctx context.Context) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		facts := d.facts(ctx)
		status := Describe(facts, d.opts.now())
		if ctx.Err() != nil {
			return
		}
		if d.tray != nil {
			d.tray.show(status)
		}
		d.window.follow(facts.URL)
		d.announce(ctx, status)
		if !ipc.Pause(ctx, pace) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-d.news:
		case <-minute.C:
		}
	}
}

func (d *desktop) facts(ctx context.Context) Facts {
	f := Facts{Since: d.since, Storage: d.storage.facts(), Autostart: d.autostart.Enabled(), NoAutostart: d.autostart.Unavailable()}
	if d.opts.Daemon.Port != nil {
		f.Port = *d.opts.Daemon.Port
	} else if settings, err := d.opts.Daemon.Home.Settings(d.opts.Daemon.Getenv); err == nil {
		f.Port = settings.Port
	}
	d.link.look(ctx, &f)
	return f
}

// noticePatience is how long the desktop's notice service may take.
const noticePatience = 10 * time.Second

// announce shows notices of what is new, where the owner wants them.
func (d *desktop) announce(ctx context.Context, s Status) {
	now := d.opts.now()
	config, err := d.opts.Daemon.Home.Config()
	due := d.announcer.due(s.Told, s.Whole, err == nil && config.Desktop.Quiet.Has(now), now)
	if d.session == nil || len(due) == 0 || err != nil || !config.Desktop.Notifications {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noticePatience)
	defer cancel()
	for _, notice := range due {
		if err := d.session.notify(ctx, notice); err != nil {
			d.opts.Daemon.Log.Warn("a notice could not be shown", "err", err)
		}
	}
}
