package hubcli

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/network/hub/server"
)

func TestHUB_01_StatusSaysWhatIsWrong(t *testing.T) {
	const id = "3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a"
	whole := server.Status{Team: "crew", Node: "hub-1", ID: id, Since: time.Now().UnixMilli(), PCs: 3, Up: 2, Waiting: 7, Decisions: 5, Bytes: 1 << 20, MaxBytes: 1 << 30, Replicas: 1}
	lacks := func(kind, of string) server.Status {
		s := whole
		s.Unanswered = []server.Unanswered{{Kind: kind, Of: of, Asked: 3000}}
		return s
	}
	full := func(replicas int) server.Status {
		s := whole
		s.Full, s.Replicas = time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC).UnixMilli(), replicas
		return s
	}
	for _, c := range []struct {
		status    server.Status
		says, not string
	}{
		{whole, "2 of 3 PCs are up. 7 messages for PCs that are away, 5 decisions, 1.0 MB of 1.1 GB are used.\n", "NO ANSWER"},
		{lacks(server.KindMessages, "crew"), "2 of 3 PCs are up. 5 decisions, 1.0 MB of 1.1 GB are used.\nNO ANSWER: the stream of crew's messages did not answer within 3s. How much it keeps is not told above.\n", "messages for PCs"},
		{lacks(server.KindDecisions, "crew"), "NO ANSWER: the stream of crew's decisions did not answer within 3s.", "5 decisions"},
		{lacks(server.KindPresence, "crew"), "NO ANSWER: the stream of crew's presence did not answer within 3s. Only PCs that are connected to this node are counted as up.\n", "not told above"},
		{full(1), "FULL: the disk is full since 2026-03-04 14:00 UTC: the hub stores nothing more until there is room, and senders keep theirs.\n", "this node"},
		{full(3), "FULL: the disk is full since 2026-03-04 14:00 UTC: this node may store nothing more until there is room, and the other nodes go on without it.\n", "the hub stores"},
	} {
		if text := statusText(c.status, time.Now()); !strings.Contains(text, c.says) || strings.Contains(text, c.not) {
			t.Errorf("it says %q, which lacks %q or has %q", text, c.says, c.not)
		}
	}
}
