package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// Autostart starts the app, hidden, when its user logs in (DSK-04). What is in
// force is what the system's own files say; nothing is stored besides.
type Autostart struct {
	name    string   // of the entry, one for each home
	command []string // the program and its arguments
}

// NewAutostart is the entry of this very program for home.
func NewAutostart(home config.Home) (Autostart, error) {
	self, err := os.Executable()
	if err != nil {
		return Autostart{}, fmt.Errorf("find this program: %w", err)
	}
	entry := Autostart{name: "bridge", command: []string{self, "--hidden"}}
	if !home.IsDefault() {
		entry.name += "-" + home.Key()
		entry.command = append(entry.command, "--home", home.Dir())
	}
	return entry, nil
}

// Enabled reports whether the app starts at login.
func (a Autostart) Enabled() bool { return a.login().enabled() }

// Unavailable says why it cannot be switched, "" where it can.
func (a Autostart) Unavailable() string {
	if err := a.check(); err != nil {
		return err.Error()
	}
	return a.login().unavailable()
}

// Set switches it and looks whether that worked.
func (a Autostart) Set(on bool) error {
	if on == a.Enabled() {
		return nil
	}
	if !on {
		if err := a.login().disable(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return bridge.WithCause(bridge.Storage, err, "the start at login could not be switched off")
		}
		return nil
	}
	if why := a.Unavailable(); why != "" {
		return bridge.Errorf(bridge.Unsupported, "%s", why)
	}
	err := a.login().enable()
	if err == nil {
		err = a.readBack()
	}
	if err != nil {
		_ = a.login().disable() // an entry that does not start Bridge is worse than none
		return bridge.WithCause(bridge.Storage, err, "the start at login could not be switched on")
	}
	return nil
}

// loginSwitch is the page's switch: the tray shows what it did.
type loginSwitch struct {
	Autostart
	changed func()
}

// Set switches it.
func (s loginSwitch) Set(on bool) error {
	defer s.changed()
	return s.Autostart.Set(on)
}

// check refuses what the entry's format cannot carry: the library that writes
// it escapes nothing that its readers would expand.
func (a Autostart) check() error {
	unsafe := "\"`$\\%\n\r\t"
	if runtime.GOOS == "windows" {
		unsafe = "\"%\n\r\t" // a backslash parts folders there
	}
	for i, argument := range a.command {
		if strings.ContainsAny(argument, unsafe) {
			return bridge.Errorf(bridge.Unsupported, "Bridge cannot start at login from %s: the path has a character that an autostart entry cannot carry", argument)
		}
		if i > 0 && runtime.GOOS == "windows" && strings.Contains(argument, " ") {
			return bridge.Errorf(bridge.Unsupported, "Bridge cannot start at login on the home %s: an autostart entry cannot carry a space", argument)
		}
	}
	return nil
}

// readBack looks at what was written, where it is text.
func (a Autostart) readBack() error {
	if runtime.GOOS == "windows" {
		if !a.Enabled() {
			return errors.New("the entry is not there")
		}
		return nil
	}
	written, err := os.ReadFile(a.file())
	if err != nil {
		return err
	}
	want := `Exec="` + strings.Join(a.command, `" "`) + "\"\n"
	if !bytes.Contains(written, []byte(want)) {
		return fmt.Errorf("%s does not say %s", a.file(), strings.TrimSpace(want))
	}
	return nil
}

// file is the entry on Linux.
func (a Autostart) file() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "autostart", a.name+".desktop")
}

// switchedOff reports whether the entry says that it is not to be used, as
// desktops write when their own settings switch it off.
func switchedOff(entry []byte) bool {
	for line := range strings.Lines(string(entry)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); {
		case key == "Hidden" && value == "true", key == "X-GNOME-Autostart-enabled" && value == "false":
			return true
		}
	}
	return false
}
