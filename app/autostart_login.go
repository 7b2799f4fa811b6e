//go:build (cgo || !windows) && !darwin

package app

import (
	"os"
	"slices"

	"github.com/emersion/go-autostart"
)

// login is the library's entry. It is rebuilt for every call: Enable changes
// the value that it is called on.
type login struct{ entry Autostart }

func (a Autostart) login() login { return login{a} }

func (l login) app() *autostart.App {
	return &autostart.App{Name: l.entry.name, DisplayName: "Bridge", Icon: "bridge", Exec: slices.Clone(l.entry.command)}
}

func (l login) enabled() bool {
	if !l.app().IsEnabled() {
		return false
	}
	entry, err := os.ReadFile(l.entry.file())
	return err != nil || !switchedOff(entry) // elsewhere than on Linux it is no text
}

func (l login) enable() error  { return l.app().Enable() }
func (l login) disable() error { return l.app().Disable() }

func (login) unavailable() string { return "" }
