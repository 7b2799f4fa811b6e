package exchanges

import (
	"fmt"
	"log/slog"
	"testing"

	"bridge/backend/platform/config"
)

// memoryFile keeps pauses in memory.
type memoryFile struct{ pauses []config.Pause }

func (f *memoryFile) Pauses() ([]config.Pause, error)    { return f.pauses, nil }
func (f *memoryFile) SetPauses(all []config.Pause) error { f.pauses = all; return nil }

func TestQUI_02_EarlierIdsDoNotGrowWithTheSessions(t *testing.T) {
	file := &memoryFile{pauses: []config.Pause{{A: "web-0", B: "api"}}}
	s := Open(Options{File: file, Log: slog.New(slog.DiscardHandler)})
	s.Identified("web", []string{"web-0"})
	for i := range 3 * mostAliases {
		s.Identified(fmt.Sprint("session-", i), []string{fmt.Sprint("provisional-", i)})
	}
	if len(s.aliases) > mostAliases+1 {
		t.Errorf("%d earlier ids are kept", len(s.aliases))
	}
	if got := s.idLocked("web-0"); got != "web" {
		t.Errorf("the earlier id of a paused session leads to %q", got)
	}
	if got := s.sendersTo("api"); len(got) != 2 {
		t.Errorf("mail of %q waits for api, want both ids of web", got)
	}
}
