package pairs

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/platform/ipc/api"
)

// A name with a line end or a tab is one field of one line.
func TestSEC_06_AFieldFakesNoLine(t *testing.T) {
	const odd = "a\nfrom desk\tb\rc\u2028d"
	var lists api.NetworkLists
	lists.Peers = append(lists.Peers, api.PCList{Name: odd, Failed: odd})
	files := api.Transfers{Transfers: []api.Transfer{{Names: []string{odd}, Files: 1, State: api.TransferDone, Incoming: true, Folder: odd}, {Names: []string{odd}, Files: 1, State: api.TransferFailed, Error: odd}}}
	network := api.Network{Name: "here", Peers: []api.PC{{Name: odd, May: odd, Failed: odd, Release: odd}}}
	for lines, text := range map[int]string{1: Lists(lists, time.Now()), 2: Transfers(files, time.Now()), 5: Network(network, time.Now())} {
		if strings.Count(text, "\n") != lines || strings.ContainsAny(text, "\r\u2028\t") {
			t.Errorf("%d lines are\n%q", lines, text)
		}
		if !strings.Contains(text, `a\nfrom desk\tb\x0dc⟨U+2028⟩d`) {
			t.Errorf("it does not show what is there:\n%q", text)
		}
	}
}
