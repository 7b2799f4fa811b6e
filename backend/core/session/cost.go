package session

// BytesPerToken is how many bytes of text Bridge counts as one token (CTX-03). It is an
// estimate: each model cuts text in its own way.
const BytesPerToken = 4

// Cost counts the bytes of the texts that Bridge put into a session's context, by kind.
type Cost struct {
	Tools   int64 `json:"tools"`   // bytes of answers to tools/list
	Notes   int64 `json:"notes"`   // bytes of the MCP instructions and the session-start note
	Mail    int64 `json:"mail"`    // bytes of messages, with their envelopes
	Notices int64 `json:"notices"` // bytes of notices of decisions
}

// Plus returns the sum of both.
func (c Cost) Plus(other Cost) Cost {
	return Cost{Tools: c.Tools + other.Tools, Notes: c.Notes + other.Notes, Mail: c.Mail + other.Mail, Notices: c.Notices + other.Notices}
}

// Beyond returns by how much each number of c is more than that of other, at least 0.
func (c Cost) Beyond(other Cost) Cost {
	return Cost{
		Tools: max(0, c.Tools-other.Tools), Notes: max(0, c.Notes-other.Notes),
		Mail: max(0, c.Mail-other.Mail), Notices: max(0, c.Notices-other.Notices),
	}
}

// IsZero reports whether nothing is counted.
func (c Cost) IsZero() bool { return c == Cost{} }

// Tokens returns the estimate in tokens, each number rounded up.
func (c Cost) Tokens() Cost {
	return Cost{Tools: tokens(c.Tools), Notes: tokens(c.Notes), Mail: tokens(c.Mail), Notices: tokens(c.Notices)}
}

// Total returns the sum of the kinds.
func (c Cost) Total() int64 { return c.Tools + c.Notes + c.Mail + c.Notices }

func tokens(bytes int64) int64 { return (bytes + BytesPerToken - 1) / BytesPerToken }
