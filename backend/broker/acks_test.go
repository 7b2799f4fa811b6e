package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// TestMSG_06_NobodySpeaksOfAWayThatIsNotTheirs goes through every role, way and
// stage: what a role may not say is refused in a sentence and leaves no trace.
func TestMSG_06_NobodySpeaksOfAWayThatIsNotTheirs(t *testing.T) {
	may := map[string]bool{
		"hook hook handed": true, "hook wake-hook handed": true,
		"session tool handed": true, "session tool consumed": true, "session channel handed": true,
		"plugin plugin handed": true,
	}
	roles := []api.Role{api.RoleSession, api.RolePlugin, api.RoleHook, api.RoleMod, api.RoleRunner, api.RoleOwner, api.RoleDashboard}
	ways := []mail.Via{
		mail.ViaHook, mail.ViaWakeHook, mail.ViaChannel, mail.ViaMod, mail.ViaPlugin, mail.ViaTool, mail.ViaQueue, mail.ViaQueueUnclear,
		mail.ViaActivity, mail.ViaPrompt, mail.ViaTranscript, mail.ViaReply, "telepathy",
	}
	b := newBench(t)
	from := b.join(api.Register{Name: "from"})
	peer := b.join(api.Register{Name: "to", SessionID: "s1"})
	for _, role := range roles {
		client := b.dial(role)
		for _, via := range ways {
			for _, stage := range []bridge.Stage{bridge.StageHanded, bridge.StageConsumed} {
				what := strings.Join([]string{string(role), string(via), string(stage)}, " ")
				sent := from.mustSend(api.SendArgs{To: "to", Body: what})
				err := client.Ack(t.Context(), api.Ack{
					Lease: session.Lease{ID: "l", Recipient: peer.ID, Messages: []string{sent.ID}}, Stage: stage, Via: via, Detail: "word",
				})
				row, findErr := b.db.Find(t.Context(), sent.ID)
				if findErr != nil {
					t.Fatal(findErr)
				}
				d := row.Deliveries[0]
				switch {
				case may[what]:
					fact := map[bridge.Stage]mail.Fact{bridge.StageHanded: d.Handed, bridge.StageConsumed: d.Consumed}[stage]
					if err != nil || fact.Via != via {
						t.Errorf("%s: %v, stored %+v", what, err, fact)
					}
				case bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), string(role)) && !strings.Contains(err.Error(), string(via)):
					t.Errorf("%s: %v, want it refused by name", what, err)
				case d.Stage() != bridge.StageDurable:
					t.Errorf("%s was refused and recorded: %+v", what, d)
				}
			}
		}
	}
}

func TestMSG_06_NoClientWritesASentenceIntoTheEvidence(t *testing.T) {
	for _, tt := range []struct {
		name string
		role api.Role
		ack  api.Ack
		want mail.Fact // without its time; none: refused
	}{
		{"typed", api.RoleHook, api.Ack{Via: mail.ViaHook, Detail: "Stop", Evidence: "the owner allowed it"}, mail.Fact{Via: mail.ViaHook, Evidence: "hook Stop"}},
		{"a sentence as the detail", api.RoleHook, api.Ack{Via: mail.ViaHook, Detail: "Stop. The owner allowed it"}, mail.Fact{}},
		{"65 characters", api.RoleHook, api.Ack{Via: mail.ViaHook, Detail: strings.Repeat("x", 65)}, mail.Fact{}},
		{"an older hook", api.RoleHook, api.Ack{Evidence: "hook PostToolUse"}, mail.Fact{Via: mail.ViaHook, Evidence: "hook PostToolUse"}},
		{"an older wake hook", api.RoleHook, api.Ack{Evidence: "wake hook"}, mail.Fact{Via: mail.ViaWakeHook, Evidence: "wake hook"}},
		{"an older channel", api.RoleSession, api.Ack{Evidence: "channel notification"}, mail.Fact{Via: mail.ViaChannel, Evidence: "channel notification"}},
		{"an older plugin", api.RolePlugin, api.Ack{Evidence: "opencode stored it in the running turn"}, mail.Fact{Via: mail.ViaPlugin, Evidence: "plugin"}},
		{"a hook that says queue", api.RoleHook, api.Ack{Evidence: "codex queue took it"}, mail.Fact{Via: mail.ViaHook, Evidence: "hook"}},
		{"the owner's command", api.RoleOwner, api.Ack{Evidence: "hook Stop"}, mail.Fact{}},
	} {
		t.Run("MSG-06 "+tt.name, func(t *testing.T) {
			b := newBench(t)
			from, peer := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "to"})
			sent := from.mustSend(api.SendArgs{To: "to", Body: "mail"})
			tt.ack.Lease = session.Lease{ID: "l", Recipient: peer.ID, Messages: []string{sent.ID}}
			tt.ack.Stage = bridge.StageHanded
			err := b.dial(tt.role).Ack(t.Context(), tt.ack)
			row, findErr := b.db.Find(t.Context(), sent.ID)
			if findErr != nil {
				t.Fatal(findErr)
			}
			got := row.Deliveries[0].Handed
			got.At, got.Process = 0, ""
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != mail.Fact{}) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestMSG_06_OldAndNewReceiptsAreImported: a line of the read journal without a way
// keeps its meaning; one that claims what no client can know is left where it is.
func TestMSG_06_OldAndNewReceiptsAreImported(t *testing.T) {
	const head = `[{"stage":"handed","id":"m1","recipient":"nobody","at":5,`
	for _, tt := range []struct {
		name, line string
		want       mail.Fact
	}{
		{"old hook", head + `"evidence":"hook Stop"}]`, mail.Fact{At: 5, Via: mail.ViaHook, Evidence: "hook Stop"}},
		{"old channel", head + `"evidence":"channel notification"}]`, mail.Fact{At: 5, Via: mail.ViaChannel, Evidence: "channel notification"}},
		{"old wake hook", head + `"evidence":"wake hook"}]`, mail.Fact{At: 5, Via: mail.ViaWakeHook, Evidence: "wake hook"}},
		{"new", head + `"via":"hook","detail":"Stop","evidence":"anything"}]`, mail.Fact{At: 5, Via: mail.ViaHook, Evidence: "hook Stop"}},
		{"new channel", head + `"via":"channel","evidence":"channel notification"}]`, mail.Fact{At: 5, Via: mail.ViaChannel, Evidence: "channel notification"}},
		{"a queue", head + `"via":"queue","evidence":"hook Stop"}]`, mail.Fact{}},
	} {
		t.Run("MSG-06 "+tt.name, func(t *testing.T) {
			b := newBench(t)
			stored := bridge.Message{ID: "m1", Recipient: "nobody", From: bridge.OwnerAddress(), To: "nobody", ConversationID: "m1", Body: "mail", CreatedAt: 1}
			if _, _, err := b.db.Append(t.Context(), []bridge.Message{stored}); err != nil {
				t.Fatal(err)
			}
			b.stop()
			file := filepath.Join(b.home.ReadJournal(), "one.json")
			if err := os.MkdirAll(b.home.ReadJournal(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.line), 0o600); err != nil {
				t.Fatal(err)
			}
			b.start()
			row, err := b.db.Find(t.Context(), "m1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, row.Deliveries[0].Handed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat(file); os.IsNotExist(err) != (tt.want != mail.Fact{}) {
				t.Errorf("afterwards the ack: %v", err)
			}
		})
	}
}
