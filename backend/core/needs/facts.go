package needs

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/proof"
)

// Facts is the input of List. Unknown facts are missing.
type Facts struct {
	// NoBroker is since when no broker serves the home; 0 while one does.
	NoBroker  bridge.UnixMillis `json:"noBroker,omitempty"`
	Storage   StorageFact       `json:"storage,omitzero"`
	Approvals []job.Approval    `json:"approvals,omitempty"`
	Questions []QuestionFact    `json:"questions,omitempty"`
	Jobs      []JobFact         `json:"jobs,omitempty"`
	Mail      []MailFact        `json:"mail,omitempty"`
	Expired   []ExpiredFact     `json:"expired,omitempty"`
	Agents    []AgentFact       `json:"agents,omitempty"`
	Exchanges []ExchangeFact    `json:"exchanges,omitempty"`
	// Proofs is what is known of the routes into the agents' versions (CAN-02).
	Proofs []proof.Summary `json:"proofs,omitempty"`
	// PutAway are the ids of news that the owner has dismissed.
	PutAway []string `json:"putAway,omitempty"`
	// Unreadable lists what could not be read for these facts, as sentences.
	Unreadable []string `json:"unreadable,omitempty"`
}

// StorageFact is the state of the home's storage.
type StorageFact struct {
	Home     string            `json:"home,omitempty"` // its folder
	Errors   int               `json:"errors,omitempty"`
	Warnings int               `json:"warnings,omitempty"`
	First    string            `json:"first,omitempty"`   // the worst finding as text
	Means    string            `json:"means,omitempty"`   // what it means for the owner, in sentences
	Do       string            `json:"do,omitempty"`      // what to do about it, in sentences
	Problem  string            `json:"problem,omitempty"` // why no check was possible
	Since    bridge.UnixMillis `json:"since,omitempty"`   // when that was first seen
}

// AddUnreadable adds what could not be read, as sentences. It is an error of the storage
// since that time, unless the facts have another one. means is what it means for the owner,
// do is what to do about it.
func (f *Facts) AddUnreadable(sentences []string, means, do string, since bridge.UnixMillis) {
	f.Unreadable = append(f.Unreadable, sentences...)
	if len(sentences) == 0 || f.Storage.Errors > 0 {
		return
	}
	f.Storage.Errors, f.Storage.Since = 1, since
	f.Storage.First, f.Storage.Means, f.Storage.Do = sentences[0], means, do
}

// QuestionFact is an open question of a session.
type QuestionFact struct {
	ID       string            `json:"id"`
	By       string            `json:"by"` // the session's name
	Folder   string            `json:"folder"`
	Title    string            `json:"title"`
	Context  string            `json:"context,omitempty"`
	Options  []string          `json:"options,omitempty"`  // their labels
	Blocking bool              `json:"blocking,omitempty"` // the session waits for the answer
	AskedAt  bridge.UnixMillis `json:"askedAt"`
}

// JobFact is a delegated job.
type JobFact struct {
	Name      string            `json:"name"`
	Title     string            `json:"title,omitempty"`
	By        string            `json:"by,omitempty"` // its supervisor
	Folder    string            `json:"folder,omitempty"`
	State     job.State         `json:"state"`
	Wait      *job.Wait         `json:"wait,omitempty"`
	Ended     job.EndReason     `json:"ended,omitempty"`
	StartedAt bridge.UnixMillis `json:"startedAt,omitempty"`
	EndedAt   bridge.UnixMillis `json:"endedAt,omitempty"`
	// Changed reports that its worktree exists and has its own commits; Landed is when
	// the owner last finished them, or 0.
	Changed bool              `json:"changed,omitempty"`
	Landed  bridge.UnixMillis `json:"landed,omitempty"`
}

// MailFact is the mail that one session has left unread for too long.
type MailFact struct {
	Session  string            `json:"session"` // its name
	Folder   string            `json:"folder,omitempty"`
	State    string            `json:"state,omitempty"` // busy or idle, "" if not connected
	Messages int               `json:"messages"`
	Oldest   string            `json:"oldest"` // the id of the message that waits longest
	Since    bridge.UnixMillis `json:"since"`
}

// ExpiredFact is a message that one recipient never read.
type ExpiredFact struct {
	Message   string            `json:"message"`
	Recipient string            `json:"recipient"` // peer id
	From      string            `json:"from"`
	To        string            `json:"to"`
	Note      string            `json:"note,omitempty"`
	At        bridge.UnixMillis `json:"at"` // when it expired
}

// ExchangeFact is two sessions that have exchanged many messages without their owner, or
// whose messages to each other the owner has paused (QUI-02).
type ExchangeFact struct {
	A        ExchangeSession   `json:"a"`
	B        ExchangeSession   `json:"b"`
	Paused   bool              `json:"paused,omitempty"`
	Messages bridge.Count      `json:"messages"` // exchanged, or waiting if it is paused; null if unknown
	Since    bridge.UnixMillis `json:"since"`
}

// ExchangeSession is one of the two sessions.
type ExchangeSession struct {
	ID   string `json:"id"` // peer id
	Name string `json:"name"`
}

// AgentFact is an agent CLI whose connection to Bridge has changed.
type AgentFact struct {
	Kind    bridge.AgentKind  `json:"kind"`
	Missing string            `json:"missing"` // the missing part
	Since   bridge.UnixMillis `json:"since"`   // when that was first seen
}

// GoneDetail returns the text for an agent's settings that start a missing Bridge program.
func GoneDetail(kind bridge.AgentKind, program string) string {
	return fmt.Sprintf("the settings of %s start %s, which is gone: its sessions get no mail", kind, program)
}

// news is how long an event counts as news.
const news = 24 * time.Hour

func (f Facts) offline() []Item {
	if f.NoBroker == 0 {
		return nil
	}
	return []Item{{
		ID: string(Offline), Sort: Offline, Title: "The broker is offline", Since: f.NoBroker, Place: f.Storage.Home, Link: "#/needs",
		Detail: "Sessions cannot send or receive. It starts with the next session, or by bridge open.",
	}}
}

func (s StorageFact) items() []Item {
	item := Item{Sort: Storage, Since: s.Since, Place: s.Home, Link: "#/storage"}
	switch {
	case s.Errors > 0:
		item.ID, item.Title = fmt.Sprintf("storage:%d", s.Errors), "The storage has "+bridge.Counted(s.Errors, "error")
		item.Detail = cmp.Or(s.First, "Storage says what is wrong and what to do") + "."
		if s.Warnings > 0 {
			item.Detail += " And " + bridge.Counted(s.Warnings, "warning") + "."
		}
		for _, line := range []string{s.Means, s.Do} {
			if line != "" {
				item.Detail += "\n" + line
			}
		}
	case s.Problem != "":
		item.ID, item.Title, item.Detail = "storage:unknown", "The storage cannot be looked at", s.Problem
	default:
		return nil
	}
	return []Item{item}
}

func (f Facts) approvals(now time.Time) (items []Item) {
	for _, a := range f.Approvals {
		if !a.IsOpen(now) {
			continue
		}
		if a.OfSession() {
			items = append(items, promptItem(a))
			continue
		}
		at := slices.IndexFunc(f.Jobs, func(fact JobFact) bool { return fact.Name == a.Job })
		asker := JobFact{Name: a.Job}
		if at >= 0 {
			asker = f.Jobs[at]
		}
		until := int64(a.ExpiresAt)
		item := asker.item(Approval, a.ID, "asks for permission")
		item.Detail, item.Since, item.Until, item.Place = exactly(a), int64(a.AskedAt), &until, cmp.Or(a.Cwd, asker.Folder)
		item.Link += "/log"
		item.By = asker.By
		items = append(items, item)
	}
	return items
}

// promptItem returns the item of an interactive session's permission prompt (NED-02).
func promptItem(a job.Approval) Item {
	item := Item{
		ID: string(Approval) + ":" + a.ID, Sort: Approval, Title: a.Session + " asks for permission", Detail: exactly(a), Since: int64(a.AskedAt),
		Place: a.Cwd, Link: "#/needs", By: a.Session,
	}
	if a.OnlyTold == "" {
		item.choices = a.Choices
	}
	if item.isElsewhere = a.OnlyTold != ""; item.isElsewhere {
		item.Detail = withLine(item.Detail, "Answer it in the terminal: "+a.OnlyTold+".")
	}
	return item
}

// withLine appends a line of Bridge's to an agent's text, which stays unchanged.
func withLine(text, line string) string {
	if text == "" {
		return line
	}
	return text + "\n" + line
}

// exactly returns the requested action, complete and byte for byte.
func exactly(a job.Approval) string {
	if a.Detail == "" {
		return a.What
	}
	if a.What == "" || strings.HasPrefix(a.Detail, a.What) {
		return a.Detail
	}
	return a.What + ": " + a.Detail
}

func (f Facts) questions() (items []Item) {
	for _, q := range f.Questions {
		item := Item{
			ID: "question:" + q.ID, Sort: Question, Title: q.By + " asks: " + q.Title, Detail: q.Context, Since: q.AskedAt, Place: q.Folder,
			Link: "#/needs", plain: q.By + " asks you something",
		}
		if len(q.Options) > 0 {
			item.options = q.Options
			item.Detail = withLine(q.Context, "You can choose: "+strings.Join(q.Options, "; ")+".")
		}
		if q.Blocking {
			item.Detail = withLine(item.Detail, "It waits for the answer.")
			item.By = q.By
		}
		items = append(items, item)
	}
	return items
}

// item returns an item of this job; what follows its title.
func (j JobFact) item(sort Sort, id, what string) Item {
	return Item{
		ID: string(sort) + ":" + id, Sort: sort, Title: cmp.Or(j.Title, j.Name) + " " + what, Place: j.Folder,
		Link: "#/runs/" + url.PathEscape(j.Name), plain: j.Name + " " + what,
	}
}

func (f Facts) jobs(now time.Time) (items []Item) {
	for _, j := range f.Jobs {
		switch {
		case j.State == job.Waiting && j.Wait != nil && stops[j.Wait.For] != "":
			items = append(items, j.stopped())
		case slices.Contains([]job.State{job.Failed, job.Refused, job.Limit, job.Interrupted}, j.State):
			if now.Sub(time.UnixMilli(j.EndedAt)) < news {
				items = append(items, j.ended())
			}
		case j.State == job.Finished && j.Changed && j.Landed < j.EndedAt:
			item := j.item(JobReview, fmt.Sprintf("%s:%d", j.Name, j.EndedAt), "has changes for you")
			item.Detail = "It has finished. Its changes stay in its worktree until you apply, keep or discard them."
			item.Since = j.EndedAt
			item.Link += "/changes"
			items = append(items, item)
		}
	}
	return items
}

// stops are the texts about conditions that need a decision before a job continues. An
// approval has a separate item, and a provider's retry needs no one.
var stops = map[job.WaitFor]string{
	job.ForBudget:  "It has spent what it was given.",
	job.ForTime:    "It has run for as long as it was given.",
	job.ForRepeat:  "It made the same call with the same result five times.",
	job.ForSilence: "It was not heard of for ten minutes.",
}

func (j JobFact) stopped() Item {
	item := j.item(JobAsks, fmt.Sprintf("%s:%s:%s", j.Name, j.Wait.For, j.Wait.ID), "waits for your word")
	item.Detail, item.Since, item.By = stops[j.Wait.For], cmp.Or(int64(j.Wait.Since), j.StartedAt), j.By
	return item
}

func (j JobFact) ended() Item {
	phrases := map[job.State]string{job.Limit: "was stopped by a usage limit", job.Interrupted: "was interrupted", job.Refused: "was refused"}
	item := j.item(JobEnded, fmt.Sprintf("%s:%d", j.Name, j.EndedAt), cmp.Or(phrases[j.State], "failed"))
	item.Detail = strings.TrimSpace(reasonWords(j.Ended) + " " + cmp.Or(j.By, "Its supervisor") + " has been told; it can be continued.")
	item.Since, item.News = j.EndedAt, true
	return item
}

func (f Facts) mail() (items []Item) {
	for _, m := range f.Mail {
		detail := "It is idle; give it a turn, and it reads."
		switch m.State {
		case "":
			detail = "It is not connected; the mail waits for it."
		case "busy":
			detail = "It is busy and has not reached a step at which it takes mail."
		}
		items = append(items, Item{
			ID: fmt.Sprintf("mail:%s:%s", m.Session, m.Oldest), Sort: Mail, Title: m.Session + " has not read " + bridge.Counted(m.Messages, "message"),
			Detail: detail, Since: m.Since, Place: m.Folder, Link: sessionLink(m.Session, m.Oldest), News: true,
			session: m.Session,
		})
	}
	return items
}

func (f Facts) expired() (items []Item) {
	for _, e := range f.Expired {
		items = append(items, Item{
			ID: fmt.Sprintf("expired:%s:%s", e.Message, e.Recipient), Sort: Expired, Title: fmt.Sprintf("A message from %s to %s expired unread", e.From, e.To),
			Detail: cmp.Or(e.Note, "It is kept in the archive and was not handed over."), Since: e.At, Link: sessionLink(e.To, e.Message), News: true,
		})
	}
	return items
}

// sessionLink returns the link to a session's conversation, and to one message in it.
func sessionLink(name, message string) string {
	return "#/sessions/" + url.PathEscape(name) + "?m=" + url.QueryEscape(message)
}

func (f Facts) agents() (items []Item) {
	for _, a := range f.Agents {
		items = append(items, Item{
			ID: "agent:" + string(a.Kind), Sort: Agent, Title: string(a.Kind) + " is not connected any more as it was", Detail: a.Missing,
			Since: a.Since, Link: "#/settings", News: true,
		})
	}
	return items
}

// routes returns an item for each version of an agent with a broken route. Its id stays
// while the version does, so that it is dismissed once.
func (f Facts) routes() (items []Item) {
	for _, p := range f.Proofs {
		if len(p.Broken) == 0 {
			continue
		}
		item := Item{
			ID: fmt.Sprintf("%s:%s:%s", Routes, p.Kind, p.Version), Sort: Routes, Title: string(p.Kind) + ": " + p.Broken[0].Text,
			Since: p.At, Link: "#/settings", News: true,
		}
		if worked := p.Broken[0].Worked; worked != "" {
			item.Detail = "It worked in " + worked + ". "
		}
		if len(p.Broken) > 1 {
			item.Title = fmt.Sprintf("%s %s: %s are broken", p.Kind, p.Version, bridge.Counted(len(p.Broken), "route"))
			item.Detail = p.Text() + " "
		}
		item.Detail += "Bridge tries each new version of " + string(p.Kind) + " once."
		items = append(items, item)
	}
	return items
}

func (f Facts) exchanges() (items []Item) {
	for _, e := range f.Exchanges {
		both := e.A.Name + " and " + e.B.Name
		item := Item{
			ID: fmt.Sprintf("%s:%s:%s:%d", Exchange, e.A.ID, e.B.ID, e.Since), Sort: Exchange, Since: e.Since, Link: "#/needs",
			Exchange: &ExchangeItem{A: e.A, B: e.B, Paused: e.Paused},
		}
		if e.Paused {
			item.Title = both + " are paused"
			item.Detail = "They get no messages from each other until you resume them. " + e.Messages.Of("message") + " " + waits(e.Messages) + "."
		} else {
			item.Title = both + " have exchanged " + e.Messages.Of("message") + ": let them go on, or pause"
			item.Detail = "Since your last word to them, neither has used a tool other than Bridge's. Paused messages wait and wake nobody."
		}
		items = append(items, item)
	}
	return items
}

func waits(count bridge.Count) string {
	if count == 1 {
		return "waits"
	}
	return "wait"
}

// reasons are the texts about a run's failure.
var reasons = map[job.EndReason]string{
	job.EndEmpty: "It ended without a word.", job.EndRefusal: "The model or its provider refused.", job.EndLimit: "The account's usage is used up.",
	job.EndContext: "The conversation does not fit into the model any more.", job.EndLength: "Its answer was cut by the model's own limit.",
	job.EndAuth: "The provider does not accept the account.", job.EndOverload: "The provider was overloaded.", job.EndProvider: "The provider failed.",
	job.EndNetwork: "The provider could not be reached.", job.EndInterrupted: "It was interrupted.", job.EndDenied: "It stopped where something was denied.",
	job.EndNoSession: "The session to continue is unknown.", job.EndInUse: "Another process writes to its session.",
	job.EndLost: "The agent ended in the middle.", job.EndFailed: "The agent reports an error.",
	job.EndedRunnerGone: "Its runner is gone and left no result.", job.EndedNotStarted: "The agent could not be started.",
}

func reasonWords(why job.EndReason) string {
	if why == "" {
		return ""
	}
	return cmp.Or(reasons[why], "It ended: "+string(why)+".")
}
