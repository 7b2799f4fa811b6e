package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/network/hub/subject"
	"bridge/backend/testing/testkit"
)

// silence has a stream of the hub's NATS hear no question about itself any more, as one
// without a leader does.
func (h *hub) silence(account, stream string) {
	h.t.Helper()
	h.ignore(account, "STREAM.INFO."+stream)
}

// ignore has the hub's NATS not answer the hub's questions of that kind any more.
func (h *hub) ignore(account, question string) {
	h.t.Helper()
	const nowhere = "nowhere"
	conn := h.conn
	if account == registryAccount {
		conn = h.own
	}
	if _, err := conn.Subscribe(nowhere, func(*nats.Msg) {}); err != nil { // who hears it says nothing
		h.t.Fatal(err)
	}
	of, err := h.engine.LookupAccount(account)
	if err == nil {
		err = of.AddMapping("$JS.API."+question, nowhere)
	}
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// TestHUB_01_StatusTellsTheRestWhereAStreamDoesNotAnswer: and names what did not, and for
// how long it was asked.
func TestHUB_01_StatusTellsTheRestWhereAStreamDoesNotAnswer(t *testing.T) {
	const wait = 2 * time.Second
	for name, silent := range map[string][]struct{ kind, of, account, stream, says string }{
		"messages": {{KindMessages, "crew", "crew", subject.MessageStream("crew"), "the stream of crew's messages did not answer within 2"}},
		"all others": {
			{KindDecisions, "crew", "crew", subject.DecisionStream("crew"), "the stream of crew's decisions did not answer within 2"},
			{KindPresence, "crew", "crew", subject.BucketStream(subject.PresenceBucket("crew")), "the stream of crew's presence did not answer within 2"},
			{KindRegistry, "hub", registryAccount, subject.BucketStream(registryBucket), "the stream of the hub's registry did not answer within 2"},
			{KindRoster, "crew", "crew", subject.BucketStream(subject.RosterBucket("crew")), "the stream of crew's roster did not answer within 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHub(t, func(opts *Options) { opts.StatusWait = wait })
			anna, bert := h.join("anna"), h.enrol("bert")
			if err := anna.send(bert, "hello"); err != nil {
				t.Fatal(err)
			}
			client := h.dial()
			whole, err := client.Status(t.Context())
			if err != nil || len(whole.Unanswered) != 0 || whole.Waiting != 1 {
				t.Fatalf("at first status is %+v, %v", whole, err)
			}
			waiting := uint64(1)
			for _, test := range silent {
				h.silence(test.account, test.stream)
				if test.kind == KindMessages {
					waiting = 0
				}
			}
			status, err := client.Status(t.Context())
			if err != nil || len(status.Unanswered) != len(silent) {
				t.Fatalf("status is %+v, %v", status, err)
			}
			found := fmt.Sprint(checkStatus(status))
			for i, u := range status.Unanswered {
				if test := silent[i]; u.Kind != test.kind || u.Of != test.of || u.Asked < wait.Milliseconds() || u.Error != "" || !strings.Contains(found, test.says) {
					t.Errorf("it names %+v, and check finds %s", u, found)
				}
			}
			if status.PCs != 2 || status.Up != 1 || status.Waiting != waiting || status.Team != "crew" || status.Bytes == 0 || status.Bytes >= whole.Bytes {
				t.Errorf("the rest is %+v, and was %+v", status, whole)
			}
		})
	}
}

// TestHUB_01_StatusDoesNotWaitForWhatItIsDoneWith: the library takes back at the engine what
// it asked for, and waits five seconds for that.
func TestHUB_01_StatusDoesNotWaitForWhatItIsDoneWith(t *testing.T) {
	h := openHub(t, nil)
	anna := h.join("anna")
	h.ignore("crew", "CONSUMER.DELETE."+subject.BucketStream(subject.PresenceBucket("crew"))+".*")
	began := time.Now()
	status, err := h.dial().Status(t.Context())
	if err != nil || len(status.Unanswered) != 0 || status.Up != 1 {
		t.Errorf("status is %+v, %v", status, err)
	}
	testkit.Within(t, 4*time.Second, time.Since(began), "the status came")
	anna.conn.Close()
}
