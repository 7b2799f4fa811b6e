package wake

import (
	"bridge/backend/mail"
	"bridge/backend/proc"
)

// Running are those of the host processes that have not ended: it asks the system.
func Running(hosts []proc.Named) (here mail.Processes) {
	for _, host := range hosts {
		if !host.Ended() {
			here.Add(host.Name, host.Since)
		}
	}
	return here
}
