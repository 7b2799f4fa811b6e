package report

import (
	"fmt"

	"bridge/backend/core/bridge"
)

// Standing is the current state for the owner, printed by `bridge` alone.
type Standing struct {
	Home      string
	Running   bool // a broker serves the home
	Connected bool // agents are connected
	Sessions  int  // connected now
	Needs     int  // number of the owner's needs
}

// Next returns the current state and the next step. line writes a command.
func Next(s Standing, line Line) string {
	next := func(does string, args ...string) string { return fmt.Sprintf("  %s   (%s)\n", line(args...), does) }
	text := fmt.Sprintf("Bridge does not run for %s.\n", bridge.OneLine(s.Home))
	if s.Running {
		text = fmt.Sprintf("Bridge runs for %s, with %s.\n", bridge.OneLine(s.Home), bridge.Counted(s.Sessions, "session"))
	}
	if s.Needs > 0 {
		text += fmt.Sprintf("Needs you: %s.\n", bridge.Counted(s.Needs, "thing")) + next("see what it is", "needs")
	}
	switch {
	case !s.Connected:
		text += next("connect the agent CLIs of this PC", "install")
	case s.Running && s.Sessions == 0:
		text += "Start your agent sessions, or start them again if they were open before.\n"
	}
	switch {
	case s.Running:
		text += next("show the page", "open")
	case s.Connected:
		text += next("start it and show the page; a session starts it, too", "open")
	default:
		text += "  bridge demo   (look at a page with scripted sessions)\n"
	}
	return text + fmt.Sprintf("\n`%s` says more, `bridge --help` lists all commands.\n", line("status"))
}
