package mail

// A session outlives the processes of its host: one is killed, another resumes
// it. What a hook printed for a process that died before its next step was seen
// by nobody, so that the start, the registration or the first call of the process
// after it is no evidence for it (MSG-06). Each hand-over therefore names the
// process that it went to, in the store, so that it holds over a broker's restart
// too. A compaction, a cleared context, a reloaded MCP server and another thread
// of the same host are no new process.

// Processes are the host processes that are part of a session now.
type Processes struct {
	// Expected reports of a process by its name that it goes on and may still come: after
	// a broker's death the connection of an earlier one may be quicker. Nil expects none.
	Expected func(name string) bool

	names map[string]bool
	since int64 // when the first of them began, Unix epoch milliseconds; 0 for not known
}

// Add takes in a process by its name for good, "" where that is not known, and when
// it began.
func (p *Processes) Add(name string, since int64) {
	if len(p.names) == 0 || since < p.since {
		p.since = since
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	p.names[name] = true
}

// Await reports whether mail was handed to a process that is expected: neither has it been
// read so far, nor is it to be shown to anybody else.
func (p *Processes) Await(handed Fact) bool {
	return handed.Process != "" && !p.names[""] && !p.names[handed.Process] && p.Expected != nil && p.Expected(handed.Process)
}

// FollowOn reports whether mail was handed to a process that came before these. Of a
// hand-over by an older program only the time is known.
func (p *Processes) FollowOn(handed Fact) bool {
	if handed.Process == "" || p.names[""] {
		return p.since != 0 && handed.At < p.since
	}
	return !p.names[handed.Process] && !p.Await(handed)
}
