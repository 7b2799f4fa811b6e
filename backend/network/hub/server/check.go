package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Finding is one result of a check.
type Finding struct {
	What string `json:"what"`
	Bad  bool   `json:"bad"`
}

// nearlyFull is the share of the storage limit, in percent, from which Check reports a finding.
const nearlyFull = 80

// Check checks a home and its running hub, and changes nothing.
func Check(ctx context.Context, h Home) []Finding {
	set, err := h.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{{What: h.dir + " is no home of a hub yet: `bridge-hub serve` makes it", Bad: true}}
	}
	if err != nil {
		return []Finding{{What: err.Error(), Bad: true}}
	}
	found := []Finding{{What: fmt.Sprintf("hub.json is right: the hub of %s, node %s", set.Team, set.Node)}}
	found = append(found, h.checkFiles()...)
	free, err := disk.Free(h.dir)
	switch {
	case err != nil:
		found = append(found, Finding{What: "how much room there is cannot be told: " + disk.Reason(err), Bad: true})
	case free < set.MaxBytes/10:
		found = append(found, Finding{What: fmt.Sprintf("%s are free, the hub may store %s: make room, or give it a smaller --max-bytes", bridge.Size(free), bridge.Size(set.MaxBytes)), Bad: true})
	default:
		found = append(found, Finding{What: bridge.Size(free) + " are free"})
	}
	client, err := Dial(h)
	if err != nil {
		return append(found, Finding{What: err.Error(), Bad: bridge.CodeOf(err) != bridge.Unavailable})
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return append(found, Finding{What: err.Error(), Bad: true})
	}
	return append(found, checkStatus(status)...)
}

// checkFiles checks that the required files exist and that only their owner can read them.
func (h Home) checkFiles() []Finding {
	var wrong []Finding
	for _, name := range append(hubFiles(), ".", "network", "store") {
		info, err := os.Lstat(filepath.Join(h.dir, name))
		switch {
		case err != nil:
			wrong = append(wrong, Finding{What: fmt.Sprintf("%s is missing: %s", name, disk.Reason(err)), Bad: true})
		case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
			wrong = append(wrong, Finding{What: fmt.Sprintf("others may use %s (%s): close it to them", filepath.Join(h.dir, name), info.Mode().Perm()), Bad: true})
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	if _, err := h.openKeys(); err != nil { // all of them exist, so none is created
		return []Finding{{What: err.Error(), Bad: true}}
	}
	return []Finding{{What: "the hub's keys are there, and only you can read them"}}
}

func checkStatus(s Status) []Finding {
	found := []Finding{{What: fmt.Sprintf("it runs: %d of %d PCs are up", s.Up, s.PCs)}}
	if s.Full != 0 {
		found = append(found, Finding{What: s.FullWords(), Bad: true})
	}
	if s.Bytes > uint64(s.MaxBytes)/100*nearlyFull {
		found = append(found, Finding{What: fmt.Sprintf("%s of %s are used: soon it refuses what PCs send", bridge.Size(int64(s.Bytes)), bridge.Size(s.MaxBytes)), Bad: true})
	}
	for _, u := range s.Unanswered {
		found = append(found, Finding{What: u.Words(), Bad: true})
	}
	if len(s.Behind) > 0 {
		found = append(found, Finding{What: "nodes lack something: " + strings.Join(s.Behind, ", "), Bad: true})
	}
	return found
}
