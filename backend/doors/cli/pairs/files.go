package pairs

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// Content returns a description of a transfer's files.
func Content(t api.Transfer) string {
	names := bridge.OneLine(strings.Join(t.Names, ", "))
	if t.Files == 1 {
		return fmt.Sprintf("%s (%s)", names, bridge.Size(t.Bytes))
	}
	return fmt.Sprintf("%s (%s, %s)", names, bridge.Counted(t.Files, "file"), bridge.Size(t.Bytes))
}

// TransferState returns the state of a running transfer, or "" at its end.
func TransferState(t api.Transfer) string {
	switch t.State {
	case api.TransferPreparing:
		return "read for its checksums"
	case api.TransferWaiting:
		return "waits for " + t.PC.Name
	case api.TransferMoving:
		return "sent to " + t.PC.Name
	}
	return ""
}

// Transfers returns the list of transfers as text.
func Transfers(list api.Transfers, now time.Time) string {
	if len(list.Transfers) == 0 {
		return "No files were sent, and none have arrived.\n"
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, t := range list.Transfers {
		way, what := "to "+bridge.OneLine(t.PC.Name), Content(t)
		if t.Incoming {
			way = "from " + bridge.OneLine(t.PC.Name)
		}
		if len(t.Names) == 0 {
			what = fmt.Sprintf("%s, %s", bridge.Counted(t.Files, "file"), bridge.Size(t.Bytes))
		}
		var state string
		switch t.State {
		case api.TransferDone:
			state = bridge.Ago(t.Ended, now)
			if t.Incoming {
				state += "\t" + bridge.OneLine(t.Folder)
			}
		case api.TransferFailed:
			state = "failed: " + bridge.OneLine(t.Error)
		default:
			state = fmt.Sprintf("%s, %s of it\t%s", t.State, bridge.Size(t.Done), t.ID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", way, what, state)
	}
	_ = table.Flush() // to memory
	return b.String()
}
