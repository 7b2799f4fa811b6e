//go:build linux || windows

package app

import (
	"runtime"
	"sync"
	"time"

	"fyne.io/systray"

	"bridge/app/mark"
)

// shownNeeds is how many needs the menu names; the dashboard has them all.
const shownNeeds = 4

// tray is the icon and its menu. It shows the last Status that it was given.
type tray struct {
	act   actions
	icons map[State][]byte
	ended chan struct{}

	mu        sync.Mutex // guards below
	ready     bool       // the menu is built
	closed    bool       // the icon is gone: the library takes no more pictures
	displayed Status
	menu      menu
}

// actions are what the menu's items do. Each returns at once.
type actions struct {
	open, browse, backUp, check, login, quit func()
	// openAt shows the window at a place of the dashboard.
	openAt func(place string)
}

// menu is the tray's items, in their order.
type menu struct {
	line                            *systray.MenuItem
	needs                           [shownNeeds]*systray.MenuItem
	backup, result, address         *systray.MenuItem
	backUp, check                   *systray.MenuItem
	open, browse, login, why, close *systray.MenuItem
}

// startTray shows the icon. Everything is set before the library's loop starts:
// it reads some of it only once.
func startTray(act actions, first Status) (*tray, error) {
	t := &tray{act: act, icons: map[State][]byte{}, ended: make(chan struct{}), displayed: first}
	for state, badge := range badges {
		icon, err := trayIcon(badge)
		if err != nil {
			return nil, err
		}
		t.icons[state] = icon
	}
	systray.SetTitle("Bridge")
	systray.SetOnTapped(act.open)
	systray.SetTooltip(first.Tooltip())
	systray.SetIcon(t.icons[first.State])
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // Windows brings a menu's clicks to the thread that made it
		systray.Run(t.build, func() {})
	}()
	return t, nil
}

// trayIcon is a picture in the form that the system's tray wants.
func trayIcon(badge mark.Badge) ([]byte, error) {
	if runtime.GOOS == "windows" {
		return mark.ICO([]int{16, 20, 24, 32, 48}, badge)
	}
	return mark.PNG(mark.Draw(44, badge)) // trays scale down better than up
}

// build makes the menu.
func (t *tray) build() {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.menu
	m.line = label()
	for i := range m.needs {
		m.needs[i] = item("", func() { t.openNeed(i) })
		m.needs[i].Hide()
	}
	m.open = item("Open Bridge", t.act.open)
	m.browse = item("Open in browser", t.act.browse)
	m.address = label()
	systray.AddSeparator()
	m.backup = label()
	m.backUp = item("Back up now", t.act.backUp)
	m.check = item("Check storage now", t.act.check)
	m.result = label()
	systray.AddSeparator()
	m.login = systray.AddMenuItemCheckbox("Start at login", "", false)
	serve(m.login, t.act.login)
	m.why = label()
	systray.AddSeparator()
	m.close = item("Quit Bridge", t.act.quit)
	t.ready = true
	t.paint(Status{}, t.displayed)
	t.paintIcon() // Windows takes it from now on only
	time.AfterFunc(settled, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.paintIcon()
	})
}

// settled is how long the library may take to show its icon on Linux. Until then
// it may lose what it is given.
const settled = time.Second

// paintIcon shows icon and tooltip once more.
func (t *tray) paintIcon() {
	if t.closed {
		return
	}
	systray.SetIcon(t.icons[t.displayed.State])
	systray.SetTooltip(t.displayed.Tooltip())
}

// item adds an item that calls act at each click. The library drops a click without a reader,
// so a goroutine always reads.
func item(title string, act func()) *systray.MenuItem {
	added := systray.AddMenuItem(title, "")
	serve(added, act)
	return added
}

func serve(item *systray.MenuItem, act func()) {
	go func() {
		for range item.ClickedCh {
			act()
		}
	}()
}

// label adds an item without an action. It is hidden while it has no text.
func label() *systray.MenuItem {
	added := systray.AddMenuItem("", "")
	added.Disable()
	added.Hide()
	return added
}

func (t *tray) openNeed(i int) {
	t.mu.Lock()
	needs := t.displayed.Needs
	t.mu.Unlock()
	if i < len(needs) {
		t.act.openAt(needs[i].Link)
	}
}

// show makes the tray show a status, and touches only what differs.
func (t *tray) show(s Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	before := t.displayed
	t.displayed = s
	if s.State != before.State {
		systray.SetIcon(t.icons[s.State])
	}
	if s.Words != before.Words {
		systray.SetTooltip(s.Tooltip())
	}
	if t.ready {
		t.paint(before, s)
	}
}

// paint brings the menu from one status to the next.
func (t *tray) paint(before, s Status) {
	m := &t.menu
	for i, item := range m.needs {
		text(item, needTitle(before, i), needTitle(s, i))
	}
	text(m.line, before.Line(), s.Line())
	text(m.address, before.Address, s.Address)
	text(m.backup, before.Backup, s.Backup)
	text(m.result, before.Result, s.Result)
	text(m.why, before.LoginWhy, s.LoginWhy)
	enable(m.browse, s.Live)
	enable(m.backUp, s.Busy == "")
	enable(m.check, s.Busy == "")
	enable(m.login, s.LoginWhy == "" || s.Login)
	text(m.backUp, workTitle(before, "Back up now", backingUp), workTitle(s, "Back up now", backingUp))
	text(m.check, workTitle(before, "Check storage now", checking), workTitle(s, "Check storage now", checking))
	if s.Login != m.login.Checked() {
		tick(m.login, s.Login)
	}
}

func needTitle(s Status, i int) string {
	if i < len(s.Needs) {
		return s.Needs[i].Plain()
	}
	return ""
}

// text shows an item's label, or hides the item when it has none.
func text(item *systray.MenuItem, before, label string) {
	if label == before {
		return
	}
	if label == "" {
		item.Hide()
		return
	}
	item.SetTitle(label)
	item.Show()
}

// workTitle names the work while it is under way.
func workTitle(s Status, usual, work string) string {
	if s.Busy == work {
		return work
	}
	return usual
}

func enable(item *systray.MenuItem, on bool) {
	switch {
	case on == !item.Disabled():
	case on:
		item.Enable()
	default:
		item.Disable()
	}
}

func tick(item *systray.MenuItem, on bool) {
	if on {
		item.Check()
	} else {
		item.Uncheck()
	}
}

// close takes the icon away and waits for that.
func (t *tray) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	systray.Quit()
	<-t.ended
}
