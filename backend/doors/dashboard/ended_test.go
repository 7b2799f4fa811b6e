package dashboard

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
)

func TestPGE_08_EndedSessionsAreListedOnceAndWithoutJobs(t *testing.T) {
	w := newWorld(t)
	list := func() dto.EndedSessions { return decode[dto.EndedSessions](t, w.get("/api/sessions/ended")) }
	if got := list(); len(got.Sessions) != 0 {
		t.Errorf("before any session there are %+v", got)
	}
	at := fixedTime.UnixMilli()
	join := func(id, name string, since int64) {
		w.broker.join(t, session.Session{ID: id, Kind: bridge.Codex, Name: name, Cwd: "/src/app", Since: since})
	}
	join("peer-1", "codex-app", at)
	join("peer-2", "codex-api", at+1)
	join("peer-3", "codex-job-0a1b2c3d", at+2)
	join("peer-4", "codex-docs", at+3)
	for _, id := range []string{"peer-1", "peer-2", "peer-3"} {
		w.broker.leave(id)
	}
	golden(t, "sessions-ended", w.get("/api/sessions/ended").body)
	join("peer-5", "codex-api", at+4)
	if got := list(); len(got.Sessions) != 1 || got.Sessions[0].Name != "codex-app" {
		t.Errorf("with codex-api back there are %+v", got)
	}
	w.broker.leave("peer-5")
	if got := list(); len(got.Sessions) != 2 || got.Sessions[0].Name != "codex-api" {
		t.Errorf("after the second codex-api there are %+v", got)
	}
}
