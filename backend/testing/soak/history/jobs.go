package history

import (
	"fmt"
	"maps"
	"slices"
)

// Spawn gives a job.
type Spawn struct{ Job string }

// Result is what came of a run of a job, as it was told: by its message, by the answer of
// a call, or by a look. Part tells apart what is worded differently, such as a message
// and a result: each stays as it was told first.
type Result struct {
	Job  string
	Run  int
	Part string
	Text string
	// Once says that it was taken: by a message, or by the call that waited for it. Nobody
	// takes it a second time.
	Once bool
}

// Pending says that a run of a job has not ended.
type Pending struct {
	Job  string
	Run  int
	Part string
}

// Ask puts a question to the owner.
type Ask struct{ ID string }

// Answer answers a question. Refused says that it was answered before.
type Answer struct {
	ID, Text string
	Refused  bool
}

// Answered is what the asker is told: the answer that was taken.
type Answered struct{ ID, Text string }

func (Spawn) isOp()    {}
func (Result) isOp()   {}
func (Pending) isOp()  {}
func (Ask) isOp()      {}
func (Answer) isOp()   {}
func (Answered) isOp() {}

func (Spawn) String() string { return "spawn" }
func (r Result) String() string {
	if r.Once {
		return fmt.Sprintf("the result %q is taken", r.Text)
	}
	return fmt.Sprintf("the result is %q", r.Text)
}
func (Pending) String() string { return "there is no result yet" }
func (Ask) String() string     { return "the question is asked" }
func (a Answer) String() string {
	if a.Refused {
		return fmt.Sprintf("the answer %q is refused", a.Text)
	}
	return fmt.Sprintf("the question is answered %q", a.Text)
}
func (a Answered) String() string { return fmt.Sprintf("the answer is %q", a.Text) }

// jobState is what is known of a result, or of the answer to a question.
type jobState struct {
	started, delivered, accepted bool
	text                         string
}

func (s jobState) String() string {
	switch {
	case !s.started:
		return "nothing asked"
	case !s.delivered:
		return "no answer yet"
	case s.accepted:
		return fmt.Sprintf("taken: %q", s.text)
	}
	return fmt.Sprintf("given: %q", s.text)
}

// step returns the state after the operation; ok is false where a right broker cannot have
// answered so.
func (s jobState) step(e event) (after jobState, ok bool) {
	switch o := e.op.(type) {
	case Spawn, Ask:
		s.started = true
		return s, true
	case Result:
		ok = s.started && (!s.delivered || s.text == o.Text) && (!o.Once || !s.accepted)
		return jobState{started: true, delivered: true, accepted: s.accepted || o.Once, text: o.Text}, ok
	case Pending:
		return s, s.started && !s.delivered
	case Answer:
		if s.started && !s.delivered && !o.Refused {
			return jobState{started: true, delivered: true, text: o.Text}, true
		}
		return s, e.ret == open || o.Refused && s.delivered
	case Answered:
		return s, s.delivered && s.text == o.Text
	}
	return s, false
}

// jobHistories parts the calls by result and by question.
func jobHistories(records []record) (parts []part) {
	results, questions := map[string][]event{}, map[string][]event{}
	spawned := map[string][]event{} // by job
	jobOf := map[string]string{}
	for _, record := range records {
		e := event{record.client, record.op, record.call, record.ret}
		key := func(job string, run int, part string) {
			name := fmt.Sprintf("%s of run %d of %s", part, run, job)
			jobOf[name] = job
			results[name] = append(results[name], e)
		}
		switch o := record.op.(type) {
		case Spawn:
			spawned[o.Job] = append(spawned[o.Job], e)
		case Result:
			key(o.Job, o.Run, o.Part)
		case Pending:
			key(o.Job, o.Run, o.Part)
		case Ask:
			questions[o.ID] = append(questions[o.ID], e)
		case Answer:
			questions[o.ID] = append(questions[o.ID], e)
		case Answered:
			questions[o.ID] = append(questions[o.ID], e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		parts = append(parts, part{jobModel, name, slices.Concat(spawned[jobOf[name]], results[name])})
	}
	for _, id := range slices.Sorted(maps.Keys(questions)) {
		parts = append(parts, part{jobModel, "question " + id, questions[id]})
	}
	return parts
}
