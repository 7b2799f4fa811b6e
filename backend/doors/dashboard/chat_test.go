package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

func claudeSession() session.Session {
	return session.Session{ID: "peer-1", Kind: bridge.Claude, Name: "claude-app", Cwd: "/src/app", SessionID: "host-1", Since: fixedTime.UnixMilli()}
}

func codexSession() session.Session {
	return session.Session{ID: "peer-2", Kind: bridge.Codex, Name: "codex-api", Cwd: "/src/api", SessionID: "host-2", Since: fixedTime.UnixMilli(), Activity: session.Activity{Busy: true}}
}

// chatting is a world with two live sessions, the first with a native child.
func chatting(t *testing.T) *world {
	w := newWorld(t)
	w.broker.join(t, claudeSession(), api.Child{ID: "child-1", Title: "look around", State: "busy"})
	w.broker.join(t, codexSession())
	return w
}

func jsonBody(members map[string]any) string {
	body, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(body)
}

const toClaude = "/api/sessions/claude-app/message"

func TestCHT_01_CHT_02_CHT_14_TheOwnerWritesToASession(t *testing.T) {
	tests := []struct{ name, body string }{
		{"plain", "please look at the tests"},
		{"one character", "x"},
		{"shell characters", `$(rm -rf /); "quoted" & 'more' | \ ` + "`x`\n"},
		{"32,000 characters of four bytes", strings.Repeat("🙂", 32_000)},
	}
	for _, tt := range tests {
		t.Run("CHT-01 "+tt.name, func(t *testing.T) {
			w := chatting(t)
			got := decode[map[string]any](t, w.post(toClaude, jsonBody(map[string]any{"body": tt.body})))
			if len(got) != 4 || got["state"] != "queued" || got["transport"] != "bridge" {
				t.Errorf("answer %v, want queued over bridge with exactly state, transport, receipt, detail", got)
			}
			if receipt, ok := got["receipt"].(string); !ok || receipt == "" {
				t.Errorf("receipt %v, want an id", got["receipt"])
			}
			if detail, ok := got["detail"].(string); !ok || !strings.Contains(detail, "claude-app") {
				t.Errorf("detail %v, want a sentence that names the session", got["detail"])
			}
			rows, err := w.db.Conversation(t.Context(), "peer-1", 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != 1 || rows[0].Body != tt.body || rows[0].From != bridge.OwnerAddress() {
				t.Errorf("stored %+v, want the owner's own text from you, owner", rows)
			}
		})
	}
}

func TestCHT_01_EscapedCharactersCountOnce(t *testing.T) {
	w := chatting(t)
	body := `{"body":"` + strings.Repeat(`\ud83d\ude42`, 32_000) + `"}`
	if a := w.post(toClaude, body); a.status != http.StatusOK {
		t.Errorf("status %d, want 200: %s", a.status, a.body)
	}
}

type badSend struct {
	name   string
	path   string
	body   string
	status int
}

// badSends are requests of the owner that are refused, with the status.
func badSends() []badSend {
	long := strings.Repeat("a", 32_001)
	return []badSend{
		{"nothing", toClaude, ``, 400},
		{"no object", toClaude, `[]`, 400},
		{"a word", toClaude, `"hello"`, 400},
		{"null", toClaude, `null`, 400},
		{"malformed", toClaude, `{"body":"x"`, 400},
		{"two values", toClaude, `{"body":"x"}{}`, 400},
		{"no body", toClaude, `{}`, 400},
		{"empty body", toClaude, `{"body":""}`, 400},
		{"blank body", toClaude, `{"body":" \n\t"}`, 400},
		{"a number", toClaude, `{"body":7}`, 400},
		{"unknown member", toClaude, `{"body":"x","urgent":true}`, 400},
		{"a cwd", toClaude, `{"body":"x","cwd":"/"}`, 400},
		{"a binary", toClaude, `{"body":"x","binary":"/bin/sh"}`, 400},
		{"a server address", toClaude, `{"body":"x","server":"http://127.0.0.1:1"}`, 400},
		{"a sender", toClaude, `{"body":"x","from":"you"}`, 400},
		{"another case", toClaude, `{"Body":"x"}`, 400},
		{"a member twice", toClaude, `{"body":"x","body":"y"}`, 400},
		{"unknown target", toClaude, `{"body":"x","child":"child-1","target":"sibling"}`, 400},
		{"an answer to a malformed id", toClaude, `{"body":"x","reply_to":"a\u0000b"}`, 400},
		{"invalid UTF-8", toClaude, "{\"body\":\"\xff\"}", 400},
		{"half a character", toClaude, `{"body":"a\ud800"}`, 400},
		{"too long", toClaude, jsonBody(map[string]any{"body": long}), 413},
		{"far too long", toClaude, `{"body":"` + strings.Repeat("a", httpjson.MaxRequestBytes) + `"}`, 413},
		{"unknown name", "/api/sessions/nobody/message", `{"body":"x"}`, 404},
		{"a peer id", "/api/sessions/peer-1/message", `{"body":"x"}`, 404},
		{"a host session id", "/api/sessions/host-1/message", `{"body":"x"}`, 404},
		{"a kind", "/api/sessions/claude/message", `{"body":"x"}`, 404},
		{"everyone", "/api/sessions/*/message", `{"body":"x"}`, 404},
		{"another case of the name", "/api/sessions/Claude-App/message", `{"body":"x"}`, 404},
		{"empty name", "/api/sessions//message", `{"body":"x"}`, 404},
		{"paired name", "/api/sessions/laptop%2Fclaude-app/message", `{"body":"x"}`, 404},
		{"child not in the list", toClaude, `{"body":"x","child":"child-9"}`, 409},
		{"child of another session", "/api/sessions/codex-api/message", `{"body":"x","child":"child-1","target":"parent"}`, 409},
		{"empty child", toClaude, `{"body":"x","child":""}`, 409},
		{"parent without child", toClaude, `{"body":"x","target":"parent"}`, 409},
		{"unknown job", "/api/jobs/fix/message", `{"body":"x"}`, 404},
		{"bad body for a job", "/api/jobs/fix/message", `{"body":""}`, 400},
		{"to all, blank", "/api/messages", `{"to":"*","body":""}`, 400},
		{"to all, too long", "/api/messages", jsonBody(map[string]any{"to": "*", "body": long}), 413},
		{"to nobody named", "/api/messages", `{"body":"x"}`, 400},
		{"to a stranger", "/api/messages", `{"to":"nobody","body":"x"}`, 404},
		{"to a paired PC", "/api/messages", `{"to":"laptop/claude","body":"x"}`, 404},
		{"unknown member to all", "/api/messages", `{"to":"*","body":"x","hop":1}`, 400},
	}
}

func TestCHT_13_BadBodiesAreRefusedAndNothingIsDelivered(t *testing.T) {
	w := chatting(t)
	for _, tt := range badSends() {
		t.Run("CHT-13 "+tt.name, func(t *testing.T) {
			refused(t, tt.name, w.post(tt.path, tt.body), tt.status)
		})
	}
	if sent := w.broker.sent(); len(sent) != 0 {
		t.Errorf("refused requests sent %+v", sent)
	}
}

func TestCHT_13_AClientThatWritesAllBeforeItReadsHearsThatItIsTooMuch(t *testing.T) {
	w := chatting(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := w.request(http.MethodPost, toClaude, `{"body":"`+strings.Repeat("a", httpjson.DrainBytes/2)+`"}`)
	if err := r.Write(conn); err != nil {
		t.Fatalf("the request could not be written: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", response.StatusCode)
	}
}

func TestCHT_13_APairedPCsSessionIsRefusedEvenWhenItIsKnown(t *testing.T) {
	w := chatting(t)
	paired := store.Peer{ID: "peer-9", Name: "laptop/claude-app", Agent: bridge.Claude, SeenAt: 1}
	if err := w.db.SavePeer(t.Context(), paired); err != nil {
		t.Fatal(err)
	}
	refused(t, "paired name", w.post("/api/sessions/laptop%2Fclaude-app/message", `{"body":"x"}`), http.StatusNotFound)
	refused(t, "paired name to /api/messages", w.post("/api/messages", `{"to":"laptop/claude-app","body":"x"}`), http.StatusNotFound)
	if sent := w.broker.sent(); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
}

func TestCHT_13_TooManyMessagesAre429(t *testing.T) {
	w := chatting(t)
	for i := range 120 {
		if a := w.post(toClaude, `{"body":"x"}`); a.status != http.StatusOK {
			t.Fatalf("message %d: status %d: %s", i, a.status, a.body)
		}
	}
	refused(t, "one more", w.post(toClaude, `{"body":"x"}`), http.StatusTooManyRequests)
	refused(t, "one more to all", w.post("/api/messages", `{"to":"*","body":"x"}`), http.StatusTooManyRequests)
	if got := len(w.broker.sent()); got != 120 {
		t.Errorf("%d messages were sent, want 120", got)
	}
	w.clock.Advance(time.Minute)
	if a := w.post(toClaude, `{"body":"x"}`); a.status != http.StatusOK {
		t.Errorf("a minute later: status %d, want 200", a.status)
	}
}

func TestCHT_09_AReceiptIsDeliveredOnlyOnceConsumptionIsStored(t *testing.T) {
	w := chatting(t)
	sent := decode[dto.Chat](t, w.post(toClaude, `{"body":"x"}`))
	receipt := func() dto.Receipt {
		t.Helper()
		return decode[dto.Receipt](t, w.get("/api/chat-delivery/"+*sent.Receipt))
	}
	messageID := w.broker.sent()[0].MessageID
	want := dto.Receipt{ID: *sent.Receipt, State: chat.Queued, Transport: chat.Bridge, UpdatedAt: fixedTime.UnixMilli()}
	if got := receipt(); got != want {
		t.Errorf("stored: %+v, want %+v", got, want)
	}
	for i, stage := range []bridge.Stage{bridge.StageWoken, bridge.StageHanded, bridge.StageConsumed} {
		want.UpdatedAt += 1000
		if stage == bridge.StageConsumed {
			want.State = chat.Delivered
		}
		mark := mail.Mark{MessageID: messageID, Recipient: "peer-1", At: want.UpdatedAt, Evidence: fmt.Sprintf("test %d", i)}
		if err := w.db.Record(t.Context(), stage, []mail.Mark{mark}); err != nil {
			t.Fatal(err)
		}
		if got := receipt(); got != want {
			t.Errorf("after %s: %+v, want %+v", stage, got, want)
		}
	}
}

func TestCHT_09_CHT_16_ANewInstanceKnowsNoOldHandlesButTheMessages(t *testing.T) {
	w := chatting(t)
	sent := decode[dto.Chat](t, w.post(toClaude, `{"body":"x"}`))
	messageID := w.broker.sent()[0].MessageID
	for _, id := range []string{"unknown", messageID, ""} {
		refused(t, "receipt "+id, w.get("/api/chat-delivery/"+id), http.StatusNotFound)
	}
	next := newWorld(t, func(o *Options) { o.Reader = w.board.sources.open })
	refused(t, "another instance's handle", next.get("/api/chat-delivery/"+*sent.Receipt), http.StatusNotFound)
	if got := decode[dto.Messages](t, next.get("/api/messages?peer=claude-app")).Messages; len(got) != 1 || got[0].ID != messageID {
		t.Errorf("after a restart the history has %+v, want the owner's message", got)
	}
}

func TestCHT_10_LookingAtASessionLooksForItsChildren(t *testing.T) {
	w := chatting(t)
	w.get("/api/state")
	w.get("/api/messages?peer=nobody")
	if len(w.broker.looked) != 0 {
		t.Errorf("children of %v were looked for, though nobody looks at a session", w.broker.looked)
	}
	w.get("/api/messages?peer=claude-app")
	if s, _ := w.broker.roster.Resolve("claude-app", ""); len(w.broker.looked) != 1 || w.broker.looked[0] != s[0].ID {
		t.Errorf("children of %v were looked for, want those of claude-app alone", w.broker.looked)
	}
}

func TestCHT_09_HandlesAreBounded(t *testing.T) {
	h := newHandles()
	first := h.issue(handle{message: "m0"})
	for i := range 1_000 {
		h.issue(handle{message: fmt.Sprintf("m%d", i+1)})
	}
	if _, ok := h.find(first); ok || len(h.byID) != 1_000 {
		t.Errorf("%d handles are kept, the first still known: %t", len(h.byID), ok)
	}
}

func TestCHT_09_AnExpiredMessageIsNotDelivered(t *testing.T) {
	d := sampleDelivery(func(d *deliveryView) { d.Handed, d.Expired = fact(14, 1), fact(15, 0) })
	if state, _ := receiptOf(d); state != chat.Unconfirmed {
		t.Errorf("state %s, want unconfirmed", state)
	}
}

func TestCHT_02_AnUnclearOutcomeIsUnconfirmedAndNotRepeated(t *testing.T) {
	w := chatting(t)
	w.broker.failSend = fmt.Errorf("send: %w", context.DeadlineExceeded)
	sent := decode[dto.Chat](t, w.post(toClaude, `{"body":"x"}`))
	if sent.State != chat.Unconfirmed || sent.Receipt == nil {
		t.Fatalf("answer %+v, want unconfirmed with a receipt", sent)
	}
	if got := len(w.broker.sent()); got != 1 {
		t.Errorf("sent %d times, want once", got)
	}
	if got := decode[dto.Receipt](t, w.get("/api/chat-delivery/"+*sent.Receipt)); got.State != chat.Unconfirmed {
		t.Errorf("receipt %+v, want unconfirmed", got)
	}
	// The broker had stored it all the same.
	w.append(bridge.Message{ID: w.broker.sent()[0].MessageID, From: bridge.OwnerAddress(), To: "claude-app", ConversationID: "c", Body: "x", CreatedAt: fixedTime.UnixMilli()}, "peer-1")
	if got := decode[dto.Receipt](t, w.get("/api/chat-delivery/"+*sent.Receipt)); got.State != chat.Queued {
		t.Errorf("receipt of a stored message %+v, want queued", got)
	}
}

func TestCHT_10_AChildTakesNoDirectInput(t *testing.T) {
	w := chatting(t)
	got := decode[dto.Chat](t, w.post(toClaude, `{"body":"x","child":"child-1"}`))
	if got.State != chat.NotSupported || got.Receipt != nil || !strings.Contains(got.Detail, "parent") {
		t.Errorf("answer %+v, want not-supported without a receipt and with the parent option", got)
	}
	if sent := w.broker.sent(); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
}

func TestCHT_11_ANoteToTheParentCarriesTheChildsIDAndTitle(t *testing.T) {
	w := chatting(t)
	got := decode[dto.Chat](t, w.post(toClaude, `{"body":"stop digging","child":"child-1","target":"parent"}`))
	if got.State != chat.Queued || got.Transport != chat.Parent || got.Receipt == nil {
		t.Errorf("answer %+v, want queued over parent with a receipt", got)
	}
	sent := w.broker.sent()
	if len(sent) != 1 || sent[0].To != "claude-app" {
		t.Fatalf("sent %+v, want one message to the parent", sent)
	}
	for _, part := range []string{"child-1", "look around", "stop digging"} {
		if !strings.Contains(sent[0].Body, part) {
			t.Errorf("the note %q lacks %q", sent[0].Body, part)
		}
	}
	if got := decode[dto.Receipt](t, w.get("/api/chat-delivery/"+*got.Receipt)); got.Transport != chat.Parent {
		t.Errorf("receipt %+v, want transport parent", got)
	}
}

func TestCHT_01_MailToASessionThatIsAwayWaits(t *testing.T) {
	w := chatting(t)
	w.broker.leave("peer-1")
	got := decode[dto.Chat](t, w.post(toClaude, `{"body":"x"}`))
	if got.State != chat.Queued || !strings.Contains(got.Detail, "when it is back") {
		t.Errorf("answer %+v", got)
	}
}

func TestCHT_01_TheExactNameDecidesWhateverElseItMayMean(t *testing.T) {
	w := chatting(t)
	// A session that calls itself by a kind, gone, while one of the kind is live.
	gone := session.Session{ID: "peer-3", Kind: bridge.Codex, Name: "claude", Cwd: "/"}
	w.broker.join(t, gone)
	w.broker.leave("peer-3")
	// One that calls itself by another's id.
	w.broker.join(t, session.Session{ID: "peer-4", Kind: bridge.Codex, Name: "peer-1", Cwd: "/"})
	for name, id := range map[string]string{"claude": "peer-3", "peer-1": "peer-4"} {
		decode[dto.Chat](t, w.post("/api/sessions/"+name+"/message", `{"body":"for `+name+`"}`))
		rows, err := w.db.Conversation(t.Context(), id, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Body != "for "+name {
			t.Errorf("the message for %q did not reach %s: %+v", name, id, rows)
		}
	}
}

func TestCHT_01_WithoutABrokerNothingIsAccepted(t *testing.T) {
	none := newWorld(t, offline)
	down := chatting(t)
	down.broker.fail = bridge.Errorf(bridge.Unavailable, "gone")
	for _, w := range []*world{none, down} {
		refused(t, "a session", w.post(toClaude, `{"body":"x"}`), http.StatusServiceUnavailable)
	}
	refused(t, "all", none.post("/api/messages", `{"to":"*","body":"x"}`), http.StatusServiceUnavailable)
}

func TestTheOwnerWritesToAll(t *testing.T) {
	w := chatting(t)
	got := decode[dto.Sent](t, w.post("/api/messages", `{"to":"*","body":"stand-up"}`))
	if got.ID == "" || got.ConversationID == "" || len(got.Recipients) != 2 || !got.Recipients[0].Online {
		t.Errorf("answer %+v, want both sessions", got)
	}
	got = decode[dto.Sent](t, w.post("/api/messages", `{"to":"codex-api","body":"hello"}`))
	if len(got.Recipients) != 1 || got.Recipients[0].Name != "codex-api" {
		t.Errorf("answer %+v, want codex-api alone", got)
	}
}
