package mail

// A session outlives the processes of its host: one is killed, another resumes the
// session. The hook output for a process that died before its next step was lost. So
// the start, the registration or the first call of the next process is no evidence for
// it (MSG-06). Each hand-over therefore records its process in the store, which
// survives a broker's restart. A compaction, a cleared context, a reloaded MCP server
// and another thread of the same host are no new process.

// Processes are the current host processes of a session.
type Processes struct {
	// Expected reports whether a process with that name continues and may still connect:
	// after a broker's death an earlier one's connection may be faster. Nil expects none.
	Expected func(name string) bool

	names map[string]bool
	since int64 // the start of the first of them, Unix epoch milliseconds; 0 if unknown
}

// Add adds a process by its permanent name, "" if unknown, and its start time.
func (p *Processes) Add(name string, since int64) {
	if len(p.names) == 0 || since < p.since {
		p.since = since
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	p.names[name] = true
}

// Await reports whether mail was handed to an expected process: then it counts as
// unread, and no other process may receive it.
func (p *Processes) Await(fact Fact) bool {
	return fact.Process != "" && !p.names[""] && !p.names[fact.Process] && p.Expected != nil && p.Expected(fact.Process)
}

// HandedEarlier reports whether mail was handed to a process before these. A hand-over by an
// older program has only a time.
func (p *Processes) HandedEarlier(fact Fact) bool {
	if fact.Process == "" || p.names[""] {
		return p.since != 0 && fact.At < p.since
	}
	return !p.names[fact.Process] && !p.Await(fact)
}
