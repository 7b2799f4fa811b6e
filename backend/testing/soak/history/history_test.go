package history

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// script is a history written by hand.
type script struct{ *Recorder }

// do records calls of one client, one after the other, each with its answer.
func (s script) do(client string, ops ...Op) {
	for _, op := range ops {
		s.Begin(client).End(op)
	}
}

// cut records a call that was never answered.
func (s script) cut(client string, op Op) { s.Begin(client).Cut(op) }

func shows(conn, lease string, ids ...string) Inbox {
	return Inbox{To: "ann", Conn: conn, Lease: lease, Shown: ids, Whole: true}
}

// server is a showing by a server of Bridge's own, which acknowledges by itself.
func server(conn string, ids ...string) Inbox {
	return Inbox{To: "ann", Conn: conn, Shown: ids, Whole: true, Implied: true}
}

func acked(conn, lease string, ids ...string) Ack {
	return Ack{To: "ann", Conn: conn, Lease: lease, IDs: ids, Stage: bridge.StageConsumed}
}

func handedOver(conn, lease string, ids ...string) Ack {
	return Ack{To: "ann", Conn: conn, Lease: lease, IDs: ids, Stage: bridge.StageHanded}
}

func status(stage bridge.Stage) Status { return Status{To: "ann", ID: "m", Stage: stage} }

var sent = Send{To: "ann", ID: "m"}

// written is a history and, where it is wrong, a piece of each fault that is found.
type written struct {
	name  string
	write func(s script)
	wrong []string
}

func sentTo(id string) Send { return Send{To: "ann", ID: id} }

var orderScripts = []written{
	{"the older message comes first", func(s script) {
		s.do("bob", sentTo("a"), sentTo("b"))
		s.do("ann", shows("c1", "l1", "a", "b"), acked("c1", "l1", "a", "b"))
	}, nil},
	{"two messages change places", func(s script) {
		s.do("bob", sentTo("a"), sentTo("b"))
		s.do("ann", shows("c1", "l1", "b", "a"), acked("c1", "l1", "a", "b"))
	}, []string{"the order of mail to ann: wrong is the answer to ann [5 to 6]: a was stored before b was sent"}},
	{"the newer message comes alone", func(s script) {
		s.do("bob", sentTo("a"), sentTo("b"))
		s.do("ann", Inbox{To: "ann", Conn: "c1", Lease: "l1", Shown: []string{"b"}}, acked("c1", "l1", "b"))
		s.do("ann", shows("c1", "l2", "a"), acked("c1", "l2", "a"))
	}, []string{"a was stored before b was sent"}},
	{"messages of two senders at once have no order", func(s script) {
		first, second := s.Begin("bob"), s.Begin("carl")
		first.End(sentTo("a"))
		second.End(sentTo("b"))
		s.do("ann", shows("c1", "l1", "b", "a"), acked("c1", "l1", "a", "b"))
	}, nil},
	{"the older message is on lease elsewhere", func(s script) {
		s.do("bob", sentTo("a"))
		s.do("ann", shows("c1", "l1", "a"))
		s.do("bob", sentTo("b"))
		s.do("ann", shows("c2", "l2", "b"), acked("c2", "l2", "b"), acked("c1", "l1", "a"))
	}, nil},
	{"a lost answer may have had the older message", func(s script) {
		s.do("bob", sentTo("a"))
		s.cut("ann", Inbox{To: "ann", Conn: "c1"})
		s.do("bob", sentTo("b"))
		s.do("ann", Inbox{To: "ann", Conn: "c2", Lease: "l2", Shown: []string{"b"}}, acked("c2", "l2", "b"))
	}, nil},
	{"the broker that lost the answer died before", func(s script) {
		s.do("bob", sentTo("a"))
		s.cut("ann", Inbox{To: "ann", Conn: "c1"})
		s.do("test", Crash{})
		s.do("bob", sentTo("b"))
		s.do("ann", Inbox{To: "ann", Conn: "c2", Lease: "l2", Shown: []string{"b"}}, acked("c2", "l2", "b"))
	}, []string{"a was stored before b was sent"}},
	{"a message that came back is shown after the newer one", func(s script) {
		s.do("bob", sentTo("a"), sentTo("b"))
		s.do("ann", shows("c1", "l1", "a", "b"), Nack{To: "ann", Conn: "c1", Lease: "l1", IDs: []string{"a"}}, acked("c1", "l1", "b"))
		s.do("ann", shows("c1", "l2", "a"), acked("c1", "l2", "a"))
	}, nil},
	{"a send without an answer has no order", func(s script) {
		s.cut("bob", sentTo("a"))
		s.do("bob", sentTo("b"))
		s.do("ann", Inbox{To: "ann", Conn: "c1", Lease: "l1", Shown: []string{"b"}}, acked("c1", "l1", "b"))
	}, nil},
}

var mailScripts = []written{
	{"sent, shown, acknowledged", func(s script) {
		s.do("bob", sent, status(bridge.StageDurable))
		s.do("ann", shows("c1", "l1", "m"), shows("c1", ""))
		s.do("bob", status(bridge.StageDurable))
		s.do("ann", acked("c1", "l1", "m"), shows("c1", ""))
		s.do("bob", status(bridge.StageConsumed))
		s.do("test", End{})
	}, nil},
	{"sent again with the same id", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.do("bob", sent)
		s.do("ann", acked("c1", "l1", "m"))
		s.do("bob", sent)
		s.do("ann", shows("c1", ""))
	}, nil},
	{"a send that was cut off is shown long after", func(s script) {
		s.cut("bob", sent)
		s.do("ann", shows("c1", ""), shows("c1", "l1", "m"), acked("c1", "l1", "m"))
		s.do("test", End{})
	}, nil},
	{"a send that was cut off is never shown", func(s script) {
		s.cut("bob", sent)
		s.do("ann", shows("c1", ""))
		s.do("bob", status(""))
		s.do("test", End{})
	}, nil},
	{"shown while it is being sent", func(s script) {
		sending := s.Begin("bob")
		s.do("ann", shows("c1", "l1", "m"))
		sending.End(sent)
		s.do("ann", acked("c1", "l1", "m"))
	}, nil},
	{"an acknowledged send is never shown", func(s script) {
		s.do("bob", sent)
		s.do("test", End{})
	}, []string{"m to ann: wrong is test: the run ends [3 to 4], after it was waiting"}},
	{"an acknowledged send is not in the next answer", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", ""), shows("c1", "l1", "m"), acked("c1", "l1", "m"))
	}, []string{"wrong is ann: inbox of c1 does not show it [3 to 4], after it was waiting"}},
	{"an answer without room passes over it", func(s script) {
		s.do("bob", sent)
		s.do("ann", Inbox{To: "ann", Conn: "c1", Lease: "l0", Shown: []string{"other"}}, shows("c1", "l1", "m"), acked("c1", "l1", "m"))
		s.cut("bob", Send{To: "ann", ID: "other"})
	}, []string{"other to ann: wrong is ann: inbox of c1 shows it (l0) [3 to 4], after it was not stored"}},
	{"shown and never sent", func(s script) {
		s.do("ann", shows("c1", "l1", "m"))
	}, []string{"wrong is ann: inbox of c1 shows it (l1) [1 to 2], after it was not stored"}},
	{"the same message on lease to two holders", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), shows("c2", "l2", "m"), acked("c1", "l1", "m"))
	}, []string{"wrong is ann: inbox of c2 shows it (l2) [5 to 6], after it was on lease (c1 l1)"}},
	{"a lease is returned twice to one holder", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), shows("c1", "l1", "m"))
	}, []string{"wrong is ann: inbox of c1 shows it (l1) [5 to 6], after it was on lease (c1 l1)"}},
	{"two holders at the same moment", func(s script) {
		s.do("bob", sent)
		call, two := s.Begin("ann"), s.Begin("ann")
		call.End(shows("c1", "l1", "m"))
		two.End(shows("c2", "l2", "m"))
	}, []string{"on lease"}},
	{"acknowledged and handed again", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), acked("c1", "l1", "m"), shows("c1", "l2", "m"))
	}, []string{"wrong is ann: inbox of c1 shows it (l2) [7 to 8], after it was consumed"}},
	{"acknowledged and handed again after the broker's death", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), acked("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", "l2", "m"))
	}, []string{"wrong is ann: inbox of c2 shows it (l2) [9 to 10], after it was consumed"}},
	{"handed over and shown again after the broker's death", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), handedOver("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", "l2", "m"))
	}, []string{"wrong is ann: inbox of c2 shows it (l2) [9 to 10], after it was handed over (c1 l1)"}},
	{"an ack that was cut off may be lost", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.cut("ann", acked("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", "l2", "m"), acked("c2", "l2", "m"))
	}, nil},
	{"an ack that was cut off may count", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.cut("ann", acked("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", ""))
		s.do("bob", status(bridge.StageConsumed))
		s.do("test", End{})
	}, nil},
	{"a lease of a dead broker is offered again", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", "l2", "m"), acked("c2", "l2", "m"))
		s.do("test", End{})
	}, nil},
	{"a lease of a dead broker is not offered again", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", ""), shows("c2", "l2", "m"), acked("c2", "l2", "m"))
	}, []string{"wrong is ann: inbox of c2 does not show it [7 to 8], after it was waiting"}},
	{"a lease that its holder keeps over a broker's death", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", Keep{To: "ann", Conn: "c2", Lease: "l1", IDs: []string{"m"}}, shows("c3", ""), acked("c2", "l1", "m"))
		s.do("test", End{})
	}, nil},
	{"a kept lease is given to another", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.do("test", Crash{})
		s.do("ann", Keep{To: "ann", Conn: "c2", Lease: "l1", IDs: []string{"m"}}, shows("c3", "l3", "m"))
	}, []string{"wrong is ann: inbox of c3 shows it (l3) [9 to 10], after it was on lease (c2 l1)"}},
	{"a lease that was given back is offered again", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), Nack{To: "ann", Conn: "c1", Lease: "l1", IDs: []string{"m"}}, shows("c2", "l2", "m"), acked("c2", "l2", "m"))
	}, nil},
	{"a lease that was given back is not offered again", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), Nack{To: "ann", Conn: "c1", Lease: "l1", IDs: []string{"m"}}, shows("c2", ""))
	}, []string{"wrong is ann: inbox of c2 does not show it [7 to 8], after it was waiting"}},
	{"the end of a connection gives its lease back at some moment", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.cut("ann", Dropped{To: "ann", Conn: "c1"})
		s.do("ann", shows("c2", ""), shows("c2", "l2", "m"), acked("c2", "l2", "m"))
		s.do("test", End{})
	}, nil},
	{"the end of another connection gives nothing back", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.cut("ann", Dropped{To: "ann", Conn: "c9"})
		s.do("ann", shows("c2", "l2", "m"))
	}, []string{"wrong is ann: inbox of c2 shows it (l2) [7 to 8], after it was on lease (c1 l1)"}},
	{"the end of an earlier holder's connection gives nothing back", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), Nack{To: "ann", Conn: "c1", Lease: "l1", IDs: []string{"m"}}, shows("c2", "l2", "m"))
		s.cut("ann", Dropped{To: "ann", Conn: "c1"})
		s.do("ann", shows("c3", "l3", "m"))
	}, []string{"wrong is ann: inbox of c3 shows it (l3) [11 to 12], after it was on lease (c2 l2)"}},
	{"an answer that nobody saw may hold a lease", func(s script) {
		s.do("bob", sent)
		s.cut("ann", shows("c1", ""))
		s.cut("ann", Dropped{To: "ann", Conn: "c1"})
		s.do("ann", shows("c2", ""), shows("c2", "l2", "m"), acked("c2", "l2", "m"))
		s.do("test", End{})
	}, nil},
	{"an answer that nobody saw holds no lease after the broker's death", func(s script) {
		s.do("bob", sent)
		s.cut("ann", shows("c1", ""))
		s.do("test", Crash{})
		s.do("ann", shows("c2", ""), shows("c2", "l2", "m"), acked("c2", "l2", "m"))
	}, []string{"wrong is ann: inbox of c2 does not show it [7 to 8], after it was waiting"}},
	{"an answer that nobody saw may hold a lease of the broker that comes", func(s script) {
		s.do("bob", sent)
		killing := s.Begin("test")
		s.cut("ann", shows("c1", ""))
		killing.End(Crash{})
		s.do("ann", shows("c2", ""), shows("c3", ""))
		s.do("test", Crash{})
		s.do("ann", shows("c4", "l4", "m"), acked("c4", "l4", "m"))
	}, nil},
	{"looks that were cut off long before do not slow the search", func(s script) {
		for life := range 60 {
			s.cut("ann", server(fmt.Sprint("a/", life)))
			s.cut("test", Dropped{To: "ann", Conn: fmt.Sprint("a/", life), Died: true})
		}
		s.do("bob", sent)
		s.do("ann", server("a/60"), server("a/60"), server("a/60", "m"))
		s.do("test", End{})
	}, nil},
	{"a notice that has to come does not, after many looks that were cut off", func(s script) {
		for life := range 60 {
			s.cut("ann", server(fmt.Sprint("a/", life)))
			s.cut("test", Dropped{To: "ann", Conn: fmt.Sprint("a/", life), Died: true})
		}
		s.do("bob", Notice{To: "ann", ID: "d", Due: true})
		s.do("ann", server("a/60"), server("a/60"), server("a/60"))
		s.do("test", End{})
	}, []string{"d to ann: wrong is test: the run ends"}},
	{"a notice that never came, beside many looks that were cut off", func(s script) {
		s.do("bob", Notice{To: "ann", ID: "d"})
		for life := range 60 {
			s.cut("ann", server(fmt.Sprint("a/", life)))
			s.cut("test", Dropped{To: "ann", Conn: fmt.Sprint("a/", life), Died: true})
			s.do("ann", server(fmt.Sprint("a/", life+1)))
		}
		s.do("test", End{})
	}, nil},
	{"a receipt before the ack", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"))
		s.do("bob", status(bridge.StageConsumed))
		s.do("ann", acked("c1", "l1", "m"))
	}, []string{"wrong is bob: send_status says \"consumed\" [5 to 6], after it was on lease (c1 l1)"}},
	{"a receipt of a hand-over before it", func(s script) {
		s.do("bob", sent, status(bridge.StageHanded))
		s.do("ann", shows("c1", "l1", "m"), acked("c1", "l1", "m"))
	}, []string{"wrong is bob: send_status says \"handed\" [3 to 4], after it was waiting"}},
	{"a receipt is taken back", func(s script) {
		s.do("bob", sent)
		s.do("ann", shows("c1", "l1", "m"), acked("c1", "l1", "m"))
		s.do("bob", status(bridge.StageConsumed))
		s.do("test", Crash{})
		s.do("bob", status(bridge.StageDurable))
	}, []string{"wrong is bob: send_status says \"durable\" [11 to 12], after it was consumed"}},
	{"a stored message is unknown to its sender", func(s script) {
		s.do("bob", sent, status(""))
		s.do("ann", shows("c1", "l1", "m"), acked("c1", "l1", "m"))
	}, []string{"wrong is bob: send_status says \"\" [3 to 4], after it was waiting"}},
	{"a server acknowledges by itself", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.do("test", Crash{})
		s.do("ann", server("a/1"))
		s.do("bob", status(bridge.StageConsumed))
		s.do("test", End{})
	}, nil},
	{"a server shows it twice", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.do("test", Crash{})
		s.do("ann", server("a/1", "m"))
	}, []string{"wrong is ann: inbox of a/1 shows it (a lease) [7 to 8], after it was "}},
	{"a killed session is shown again what nobody acknowledged", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.cut("test", Dropped{To: "ann", Conn: "a/1", Died: true})
		s.do("ann", server("a/2"), server("a/2", "m"))
		s.do("test", End{})
	}, nil},
	{"hooks of a killed session are shown it, and then the next process", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.cut("test", Dropped{To: "ann", Conn: "a/1", Died: true})
		s.do("ann", server("a/1", "m"), server("a/1", "m"), server("a/2", "m"))
		s.do("test", End{})
	}, nil},
	{"a hook of a killed session is shown it, and then the next process twice", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.cut("test", Dropped{To: "ann", Conn: "a/1", Died: true})
		s.do("ann", server("a/1", "m"), server("a/2", "m"), server("a/2", "m"))
	}, []string{"wrong is ann: inbox of a/2 shows it (a lease) [11 to 12], after it was "}},
	{"a session is shown it twice, and then killed", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"), server("a/1", "m"))
		s.cut("test", Dropped{To: "ann", Conn: "a/1", Died: true})
		s.do("ann", server("a/2", "m"))
	}, []string{"wrong is ann: inbox of a/1 shows it (a lease) [5 to 6], after it was "}},
	{"a killed session is shown it two times more", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.cut("test", Dropped{To: "ann", Conn: "a/1", Died: true})
		s.do("ann", server("a/2", "m"), server("a/2", "m"))
	}, []string{"wrong is ann: inbox of a/2 shows it (a lease) [9 to 10], after it was "}},
	{"a killed session is shown again what was called consumed", func(s script) {
		s.do("bob", sent)
		s.do("ann", server("a/1", "m"))
		s.do("bob", status(bridge.StageConsumed))
		s.cut("test", Dropped{To: "ann", Conn: "a/1", Died: true})
		s.do("ann", server("a/2", "m"))
	}, []string{"wrong is ann: inbox of a/2 shows it (a lease) [9 to 10], after it was consumed"}},
	{"recipients and messages are told apart", func(s script) {
		s.do("bob", sent, Send{To: "cat", ID: "m"}, Send{To: "ann", ID: "n"})
		s.do("cat", Inbox{To: "cat", Conn: "c1", Lease: "l1", Shown: []string{"m"}, Whole: true})
		s.do("ann", shows("c2", "l2", "m", "n"), acked("c2", "l2", "n"))
		s.do("test", End{})
	}, []string{"m to ann: wrong is test: the run ends", "m to cat: wrong is test: the run ends"}},
	{"a notice comes when its session comes back", func(s script) {
		s.do("bob", Notice{To: "ann", ID: "d", Due: true})
		s.do("ann", server("a/1"), server("a/1", "d"))
		s.do("test", End{})
	}, nil},
	{"a notice never comes", func(s script) {
		s.do("bob", Notice{To: "ann", ID: "d", Due: true})
		s.do("ann", server("a/1"))
		s.do("test", End{})
	}, []string{"d to ann: wrong is test: the run ends [5 to 6], after it was "}},
	{"a notice of a decision that nobody knows of need not come", func(s script) {
		s.do("bob", Notice{To: "ann", ID: "d"})
		s.do("test", End{})
	}, nil},
	{"a session is told of a decision twice", func(s script) {
		s.do("bob", Notice{To: "ann", ID: "d", Due: true})
		s.do("ann", shows("c1", "l1", "d"), acked("c1", "l1", "d"))
		s.do("test", Crash{})
		s.do("ann", shows("c2", "l2", "d"), acked("c2", "l2", "d"))
	}, []string{"d to ann: wrong is ann: inbox of c2 shows it (l2) [9 to 10], after it was consumed"}},
}

var decisionScripts = []written{
	{"each replaces the one before", func(s script) {
		s.do("ann", Current{"t", nil}, Decide{"t", "one", "1", ""}, Current{"t", []string{"1"}})
		s.do("bob", Decide{"t", "two", "2", "1"}, Current{"t", []string{"2"}})
		s.do("ann", Revisions{"t", []Revision{{"1", "one", ""}, {"2", "two", "1"}}})
	}, nil},
	{"two at the same moment", func(s script) {
		call, two := s.Begin("ann"), s.Begin("bob")
		call.End(Decide{"t", "one", "1", "2"})
		two.End(Decide{"t", "two", "2", ""})
		s.do("ann", Current{"t", []string{"1"}})
	}, nil},
	{"two replace the same", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""}, Decide{"t", "two", "2", "1"})
		s.do("bob", Decide{"t", "three", "3", "1"})
	}, []string{`topic t: wrong is bob: decide "three" is 3 and replaces "1" [5 to 6], after it was decided: 1 2`}},
	{"an old one is in force", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""}, Decide{"t", "two", "2", "1"}, Current{"t", []string{"1"}})
	}, []string{`wrong is ann: in force is ["1"] [5 to 6], after it was decided: 1 2`}},
	{"none is in force", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""})
		s.do("bob", Current{"t", nil})
	}, []string{"wrong is bob: in force is [] [3 to 4], after it was decided: 1"}},
	{"one is in force that nobody decided", func(s script) {
		s.do("ann", Current{"t", []string{"9"}})
	}, []string{`wrong is ann: in force is ["9"] [1 to 2], after it was nothing decided`}},
	{"two are in force", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""}, Decide{"t", "two", "2", "1"}, Current{"t", []string{"2", "1"}})
	}, []string{"wrong is ann: in force is"}},
	{"one that was cut off counts later", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""})
		s.cut("bob", Decide{Topic: "t", Text: "two"})
		s.do("ann", Current{"t", []string{"1"}}, Current{"t", []string{"2"}}, Decide{"t", "three", "3", "2"})
		s.do("test", Revisions{"t", []Revision{{"1", "one", ""}, {"2", "two", "1"}, {"3", "three", "2"}}})
	}, nil},
	{"one that was cut off never counts", func(s script) {
		s.cut("bob", Decide{Topic: "t", Text: "two"})
		s.do("ann", Decide{"t", "three", "3", ""})
		s.do("test", Revisions{"t", []Revision{{"3", "three", ""}}})
	}, nil},
	{"one that was answered is lost", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""})
		s.do("test", Crash{}, Revisions{"t", nil})
	}, []string{"wrong is test: all revisions are [5 to 6], after it was decided: 1"}},
	{"one is recorded twice", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""})
		s.do("test", Revisions{"t", []Revision{{"1", "one", ""}, {"9", "one", "1"}}})
	}, []string{"wrong is test: all revisions are 1 9 [3 to 4], after it was decided: 1"}},
	{"topics are told apart", func(s script) {
		s.do("ann", Decide{"t", "one", "1", ""}, Decide{"u", "two", "2", ""}, Current{"t", []string{"1"}}, Current{"u", []string{"2"}})
	}, nil},
}

var jobScripts = []written{
	{"a result is taken once and stays", func(s script) {
		s.do("ann", Spawn{"j"}, Pending{"j", 1, "r"}, Result{"j", 1, "r", "done", true}, Result{"j", 1, "r", "done", false})
		s.do("test", Crash{})
		s.do("ann", Result{"j", 1, "r", "done", false})
	}, nil},
	{"a result of a spawn that was cut off", func(s script) {
		s.cut("ann", Spawn{"j"})
		s.do("ann", Pending{"j", 1, "r"}, Result{"j", 1, "r", "done", true})
	}, nil},
	{"a result of a job that nobody gave", func(s script) {
		s.do("ann", Result{"j", 1, "r", "done", true})
	}, []string{`r of run 1 of j: wrong is ann: the result "done" is taken [1 to 2], after it was nothing asked`}},
	{"a result is repeated with other content", func(s script) {
		s.do("ann", Spawn{"j"}, Result{"j", 1, "r", "done", true}, Result{"j", 1, "r", "failed", false})
	}, []string{`wrong is ann: the result is "failed" [5 to 6], after it was taken: "done"`}},
	{"a result is taken twice", func(s script) {
		s.do("ann", Spawn{"j"}, Result{"j", 1, "r", "done", true}, Result{"j", 1, "r", "done", true})
	}, []string{`wrong is ann: the result "done" is taken [5 to 6], after it was taken: "done"`}},
	{"a result is withdrawn", func(s script) {
		s.do("ann", Spawn{"j"}, Result{"j", 1, "r", "done", false}, Pending{"j", 1, "r"})
	}, []string{`wrong is ann: there is no result yet [5 to 6], after it was given: "done"`}},
	{"runs and parts are told apart", func(s script) {
		s.do("ann", Spawn{"j"}, Result{"j", 1, "r", "done", true}, Pending{"j", 2, "r"}, Result{"j", 2, "r", "more", true}, Result{"j", 2, "message", "It says more.", true})
	}, nil},
	{"a question is answered once", func(s script) {
		s.do("ann", Ask{"q"})
		call, two := s.Begin("owner"), s.Begin("page")
		call.End(Answer{"q", "yes", true})
		two.End(Answer{"q", "no", false})
		s.do("ann", Answered{"q", "no"}, Answered{"q", "no"})
	}, nil},
	{"an answer that was cut off counts or does not", func(s script) {
		s.do("ann", Ask{"q"}, Ask{"p"})
		s.cut("owner", Answer{"q", "yes", false})
		s.cut("owner", Answer{"p", "yes", false})
		s.do("owner", Answer{"q", "no", true}, Answer{"p", "no", false})
		s.do("ann", Answered{"q", "yes"}, Answered{"p", "no"})
	}, nil},
	{"two answers are taken", func(s script) {
		s.do("ann", Ask{"q"})
		s.do("owner", Answer{"q", "yes", false}, Answer{"q", "no", false})
	}, []string{`question q: wrong is owner: the question is answered "no" [5 to 6], after it was given: "yes"`}},
	{"an answer is refused and nobody gave one", func(s script) {
		s.do("ann", Ask{"q"})
		s.do("owner", Answer{"q", "yes", true})
	}, []string{`wrong is owner: the answer "yes" is refused [3 to 4], after it was no answer yet`}},
	{"the asker is told another answer", func(s script) {
		s.do("ann", Ask{"q"})
		s.do("owner", Answer{"q", "yes", false})
		s.do("ann", Answered{"q", "no"})
	}, []string{`wrong is ann: the answer is "no" [5 to 6], after it was given: "yes"`}},
}

// compare returns what is wrong with the faults that were found.
func (w written) compare(faults []Fault) error {
	if len(faults) != len(w.wrong) {
		return fmt.Errorf("%d faults, want %d: %v", len(faults), len(w.wrong), faults)
	}
	for i, want := range w.wrong {
		if !strings.Contains(faults[i].String(), want) {
			return errors.New(faults[i].String() + "\nwant: " + want)
		}
	}
	return nil
}

func TestPRF_01_WrongHistoriesAreFound(t *testing.T) {
	for model, scripts := range map[string][]written{"mail": mailScripts, "order": orderScripts, "decisions": decisionScripts, "jobs": jobScripts} {
		for _, tt := range scripts {
			t.Run(model+": "+tt.name, func(t *testing.T) {
				s := script{&Recorder{}}
				tt.write(s)
				faults, checked := s.Check()
				if err := tt.compare(faults); err != nil {
					t.Error(err)
				}
				if checked == 0 {
					t.Error("nothing was checked")
				}
			})
		}
	}
}

// verdict notes what Accept says to a test.
type verdict struct {
	testing.TB
	errors []string
}

func (v *verdict) Helper()             {}
func (v *verdict) Logf(string, ...any) {}
func (v *verdict) Errorf(format string, args ...any) {
	v.errors = append(v.errors, fmt.Sprintf(format, args...))
}

func TestPRF_01_AWrongHistoryIsDrawn(t *testing.T) {
	s := script{&Recorder{}}
	s.do("bob", sent)
	s.do("ann", shows("c1", "l1", "m"), shows("c2", "l2", "m"))
	v := &verdict{TB: t}
	s.Accept(v)
	if len(v.errors) != 1 || !strings.Contains(v.errors[0], "inbox of c2 shows it (l2)") {
		t.Fatalf("said %q", v.errors)
	}
	path := regexp.MustCompile(`drawn in (\S+\.html)`).FindStringSubmatch(v.errors[0])
	if path == nil {
		t.Fatalf("no page is named in %q", v.errors[0])
	}
	defer os.Remove(path[1])
	page, err := os.ReadFile(path[1])
	if err != nil || !strings.Contains(string(page), "inbox of c2 shows it (l2)") {
		t.Errorf("a page of %d bytes, %v", len(page), err)
	}
}

func TestPRF_01_ARightHistorySaysNothing(t *testing.T) {
	s := script{&Recorder{}}
	s.do("bob", sent)
	s.do("ann", shows("c1", "l1", "m"), acked("c1", "l1", "m"))
	v := &verdict{TB: t}
	if s.Accept(v); len(v.errors) != 0 {
		t.Errorf("said %q", v.errors)
	}
	s.cut("bob", sent)
	if got, want := s.kinds(), "1 Ack (0 cut off), 1 Inbox (0 cut off), 2 Send (1 cut off)"; got != want {
		t.Errorf("kinds: %q, want %q", got, want)
	}
}
