package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// beginAt opens the session with that version of the protocol.
func (w *wire) beginAt(version string) {
	w.t.Helper()
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, version))
	w.answer(2)
	w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// batchOf returns the answers of the next batch by their ids, and the refusals without
// one as "refused".
func (w *wire) batchOf() (ids []string, answers map[string]map[string]any) {
	w.t.Helper()
	answers = map[string]map[string]any{}
	got := w.next("batch", func(line map[string]any) bool { return line["batch"] != nil })["batch"]
	list, _ := got.([]any)
	for _, item := range list {
		answer, _ := item.(map[string]any)
		id := fmt.Sprint(answer["id"])
		ids = append(ids, id)
		answers[id] = answer
	}
	slices.Sort(ids)
	return ids, answers
}

const peersCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"peers","arguments":{}}}`

func TestRWM_20_ABatchIsServedWhereTheProtocolHasThem(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Codex})
	w.beginAt(batchVersion)
	w.say(`[` + strings.Join([]string{
		fmt.Sprintf(peersCall, 10), fmt.Sprintf(peersCall, 11), `{"jsonrpc":"2.0","id":"p","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, `5`, `[]`,
		`{"jsonrpc":"2.0","id":13,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
	}, ` , `) + `]`)
	ids, answers := w.batchOf()
	if want := []string{"10", "11", "13", "<nil>", "<nil>", "p"}; !slices.Equal(ids, want) {
		t.Errorf("answers %v, want %v", ids, want)
	}
	for _, id := range []string{"10", "11"} {
		if got := fmt.Sprint(answers[id]["result"]); !strings.Contains(got, `"self":"me"`) {
			t.Errorf("call %s answers %s", id, got)
		}
	}
	if answers["13"]["error"] == nil || answers["p"]["result"] == nil {
		t.Errorf("initialize in a batch answers %v, ping %v", answers["13"], answers["p"])
	}
	for _, silent := range []string{`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, `[{"jsonrpc":"2.0","id":1,"result":{}}]`} {
		w.say(silent)
	}
	w.say(`[]`)
	if got := w.next("refusal", func(line map[string]any) bool { return line["error"] != nil || line["batch"] != nil }); got["batch"] != nil || !strings.Contains(fmt.Sprint(got), "the batch is empty") {
		t.Errorf("a batch without requests, and then an empty one, are answered with %v", got)
	}
	w.say(`[1`)
	if got := w.next("refusal", func(line map[string]any) bool { return line["error"] != nil }); !strings.Contains(fmt.Sprint(got), "no JSON") {
		t.Errorf("half a batch is answered with %v", got)
	}
	w.call(20, "peers", `{}`)
	w.text(20)
}

// What an answer in a batch carries counts as given once the batch is written.
func TestRWM_20_MailInABatchIsGivenOnce(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Codex})
	w.beginAt(batchVersion)
	id := w.send("for the batch")
	w.say(`[{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"inbox","arguments":{"limit":5.0}}}]`)
	if _, answers := w.batchOf(); !strings.Contains(fmt.Sprint(answers["5"]), "for the batch") {
		t.Errorf("the inbox in a batch is %v", answers)
	}
	w.reaches(id, bridge.StageConsumed)
	w.call(6, "inbox", `{}`)
	if again := w.text(6); strings.Contains(again, "for the batch") {
		t.Errorf("the inbox holds it again: %s", again)
	}
}

func TestRWM_20_OtherVersionsHaveNoBatches(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		w := open(t, api.Register{Kind: bridge.Codex})
		w.beginAt(version)
		w.say(`[` + fmt.Sprintf(peersCall, 10) + `]`)
		if got := w.next("refusal", func(line map[string]any) bool { return line["error"] != nil || line["batch"] != nil }); !strings.Contains(fmt.Sprint(got["error"]), "no batches") {
			t.Errorf("with %s a batch is answered with %v", version, got)
		}
	}
}
