package wake

import (
	"bridge/backend/core/mail"
	"bridge/backend/platform/proc"
)

// Running returns those host processes that have not ended, as the system reports. A
// running process that has not connected yet is expected.
func Running(hosts []proc.Named, come map[string]bool) (here mail.Processes) {
	here.Expected = func(name string) bool { return !come[name] && proc.Lives(name) }
	for _, host := range hosts {
		if !host.Ended() {
			here.Add(host.Name, host.Since)
		}
	}
	return here
}
