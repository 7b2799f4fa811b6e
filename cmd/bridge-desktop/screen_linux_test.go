package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"bridge/backend/testing/testkit"
)

// until polls for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		if holds() {
			return
		}
		pause(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func pause(d time.Duration) { <-time.After(d) }

// screen is an X server without a person: its picture is a file.
type screen struct {
	display string
	conn    *xgb.Conn
	frame   string // the picture, in X's own dump format
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	dir := t.TempDir()
	number, file, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-fbdir", dir)
	server.ExtraFiles = []*os.File{file}
	spawn(t, server)
	file.Close()
	line, err := bufio.NewReader(number).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb told no display: %v", err)
	}
	s := &screen{display: ":" + strings.TrimSpace(line), frame: filepath.Join(dir, "Xvfb_screen0")}
	xgb.Logger = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // it tells that the server has no authority file
	if s.conn, err = xgb.NewConnDisplay(s.display); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.conn.Close)
	return s
}

// spawn starts a program that ends with the test.
func spawn(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// windows lists the visible windows of Bridge.
func (s *screen) windows(t *testing.T) []xproto.Window {
	t.Helper()
	tree, err := xproto.QueryTree(s.conn, xproto.Setup(s.conn).DefaultScreen(s.conn).Root).Reply()
	if err != nil {
		t.Fatal(err)
	}
	var found []xproto.Window
	for _, window := range tree.Children {
		attributes, err := xproto.GetWindowAttributes(s.conn, window).Reply()
		if err != nil || attributes.MapState != xproto.MapStateViewable {
			continue // it may be gone by now
		}
		name, err := xproto.GetProperty(s.conn, false, window, xproto.AtomWmName, xproto.AtomAny, 0, 64).Reply()
		if err == nil && string(name.Value) == "Bridge" {
			found = append(found, window)
		}
	}
	return found
}

func (s *screen) shows(t *testing.T) bool { return len(s.windows(t)) > 0 }

// closeWindow does what a window manager's close button does.
func (s *screen) closeWindow(t *testing.T) {
	t.Helper()
	atom := func(name string) xproto.Atom {
		reply, err := xproto.InternAtom(s.conn, false, uint16(len(name)), name).Reply()
		if err != nil {
			t.Fatal(err)
		}
		return reply.Atom
	}
	window := s.windows(t)[0]
	event := xproto.ClientMessageEvent{
		Format: 32, Window: window, Type: atom("WM_PROTOCOLS"),
		Data: xproto.ClientMessageDataUnionData32New([]uint32{uint32(atom("WM_DELETE_WINDOW")), 0, 0, 0, 0}),
	}
	if err := xproto.SendEventChecked(s.conn, false, window, 0, string(event.Bytes())).Check(); err != nil {
		t.Fatal(err)
	}
}

// picture returns the pixels on the screen.
func (s *screen) picture(t *testing.T) []byte {
	t.Helper()
	dump, err := os.ReadFile(s.frame)
	if err != nil {
		t.Fatal(err)
	}
	header := int(binary.BigEndian.Uint32(dump))
	colours := int(binary.BigEndian.Uint32(dump[76:])) // of 12 bytes each
	return dump[header+colours*12:]
}

// colours counts the different pixels on the screen: a page has many, a blank
// window one or two.
func (s *screen) colours(t *testing.T) int {
	t.Helper()
	seen := map[[4]byte]bool{}
	picture := s.picture(t)
	for i := 0; i+4 <= len(picture); i += 4 {
		seen[[4]byte(picture[i:i+4])] = true
	}
	return len(seen)
}

// bus is a session bus on which the test plays the desktop: it keeps the tray
// icons and shows the notices.
type bus struct {
	address string
	conn    *dbus.Conn

	mu      sync.Mutex
	items   []string // the owners of the tray icons
	notices []notice
}

type notice struct{ title, text string }

const (
	watcherName = "org.kde.StatusNotifierWatcher"
	noticeName  = "org.freedesktop.Notifications"
)

func newBus(t *testing.T, withTray bool) *bus {
	t.Helper()
	folder, err := os.MkdirTemp("", "bus") // not t.TempDir: that one may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) }) //nolint:errcheck // what is left is temporary
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address=1", "--address=unix:path="+filepath.Join(folder, "bus"))
	printed, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	spawn(t, daemon)
	address, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	b := &bus{address: strings.TrimSpace(address)}
	if b.conn, err = dbus.Connect(b.address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	if withTray {
		b.export(t, watcherName, "/StatusNotifierWatcher", map[string]any{"RegisterStatusNotifierItem": b.register, "Get": b.get})
	}
	b.export(t, noticeName, "/org/freedesktop/Notifications", map[string]any{"Notify": b.notify})
	return b
}

func (b *bus) export(t *testing.T, name string, path dbus.ObjectPath, methods map[string]any) {
	t.Helper()
	for _, face := range []string{name, "org.freedesktop.DBus.Properties"} {
		if err := b.conn.ExportMethodTable(methods, path, face); err != nil {
			t.Fatal(err)
		}
	}
	if reply, err := b.conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("%s: %v, %v", name, reply, err)
	}
}

func (b *bus) register(sender dbus.Sender, _ string) *dbus.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, string(sender))
	return nil
}

func (b *bus) get(_, _ string) (dbus.Variant, *dbus.Error) { return dbus.MakeVariant(true), nil }

func (b *bus) notify(_ string, _ uint32, _, title, text string, _ []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices = append(b.notices, notice{title, text})
	return uint32(len(b.notices)), nil
}

func (b *bus) shown() []notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]notice{}, b.notices...)
}

// click clicks on the nth notice, counted from 1.
func (b *bus) click(t *testing.T, n uint32) {
	t.Helper()
	if err := b.conn.Emit("/org/freedesktop/Notifications", noticeName+".ActionInvoked", n, "default"); err != nil {
		t.Fatal(err)
	}
}

// owner is the connection of the newest tray icon, "" before any.
func (b *bus) owner() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		return ""
	}
	return b.items[len(b.items)-1]
}

func (b *bus) property(t *testing.T, name string) any {
	t.Helper()
	value, err := b.conn.Object(b.owner(), "/StatusNotifierItem").GetProperty("org.kde.StatusNotifierItem." + name)
	if err != nil {
		t.Fatalf("%s of the tray icon: %v", name, err)
	}
	return value.Value()
}

// tooltip is the text that the icon shows.
func (b *bus) tooltip(t *testing.T) string {
	t.Helper()
	fields, _ := b.property(t, "ToolTip").([]any)
	if len(fields) < 3 {
		return ""
	}
	return fmt.Sprint(fields[2])
}

// icon is the icon's picture.
func (b *bus) icon(t *testing.T) []byte {
	t.Helper()
	pictures, _ := b.property(t, "IconPixmap").([][]any)
	if len(pictures) == 0 {
		return nil
	}
	pixels, _ := pictures[0][2].([]byte)
	return pixels
}

// entry is one item of the tray's menu.
type entry struct {
	id      int32
	label   string
	visible bool
	enabled bool
	checked bool
}

func (b *bus) menu(t *testing.T) []entry {
	t.Helper()
	var revision uint32
	var layout struct {
		ID         int32
		Properties map[string]dbus.Variant
		Children   []dbus.Variant
	}
	object := b.conn.Object(b.owner(), "/StatusNotifierItem/menu")
	if err := object.Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &layout); err != nil {
		t.Fatalf("the tray's menu: %v", err)
	}
	var entries []entry
	for _, child := range layout.Children {
		fields, _ := child.Value().([]any)
		id, _ := fields[0].(int32)
		properties, _ := fields[1].(map[string]dbus.Variant)
		e := entry{id: id, visible: true, enabled: true}
		e.label, _ = properties["label"].Value().(string)
		if v, ok := properties["visible"].Value().(bool); ok {
			e.visible = v
		}
		if v, ok := properties["enabled"].Value().(bool); ok {
			e.enabled = v
		}
		state, _ := properties["toggle-state"].Value().(int32)
		e.checked = state == 1
		entries = append(entries, e)
	}
	return entries
}

// find returns the visible entry whose label begins so.
func (b *bus) find(t *testing.T, label string) (entry, bool) {
	t.Helper()
	for _, e := range b.menu(t) {
		if e.visible && strings.HasPrefix(e.label, label) {
			return e, true
		}
	}
	return entry{}, false
}

// choose clicks on an entry of the menu, once it is there.
func (b *bus) choose(t *testing.T, label string) {
	t.Helper()
	var chosen entry
	until(t, "the menu has "+label, func() (there bool) {
		chosen, there = b.find(t, label)
		return there && chosen.enabled
	})
	object := b.conn.Object(b.owner(), "/StatusNotifierItem/menu")
	call := object.Call("com.canonical.dbusmenu.Event", 0, chosen.id, "clicked", dbus.MakeVariant(""), uint32(0))
	if call.Err != nil {
		t.Fatal(call.Err)
	}
}

// changedPicture reports whether the screen differs from before.
func (s *screen) changedPicture(t *testing.T, before []byte) bool {
	t.Helper()
	return !bytes.Equal(before, s.picture(t))
}
