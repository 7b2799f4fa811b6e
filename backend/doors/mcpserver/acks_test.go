package mcpserver

import (
	"fmt"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// TestMSG_06_AnAnswerToADyingHostIsNotRead: the answer is written, and the host is
// killed. One that only ends its server has read what it was given.
func TestMSG_06_AnAnswerToADyingHostIsNotRead(t *testing.T) {
	for lives, want := range map[bool]bridge.Stage{true: bridge.StageConsumed, false: bridge.StageHanded} {
		t.Run(fmt.Sprintf("MSG-06 the host lives: %t", lives), func(t *testing.T) {
			w := openUnder(t, api.Register{Kind: bridge.Codex}, func() bool { return lives })
			w.begin()
			id := w.send("read me")
			w.call(3, "inbox", `{}`)
			w.text(3)
			w.close()
			row, err := w.db.Find(t.Context(), id)
			if err != nil || row.Stage() != want {
				t.Errorf("it is %s, %v; want %s", row.Stage(), err, want)
			}
		})
	}
	t.Run("MSG-06 it lives on", func(t *testing.T) {
		w := open(t, api.Register{Kind: bridge.Codex})
		w.begin()
		id := w.send("read me")
		w.call(3, "inbox", `{}`)
		w.text(3)
		w.reaches(id, bridge.StageHanded)
		w.reaches(id, bridge.StageConsumed) // without another word of the host
	})
}
