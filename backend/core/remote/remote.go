// Package remote has the rules of what paired PCs do for each other: jobs, messages,
// decisions and lists of sessions. What one PC may ask of another, whether the
// other's owner allows it, and how often. It does no I/O: the link has proved who
// asks, and whoever resolves paths has done so.
package remote

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

const (
	// Capability says in a hello that a PC knows these requests (RMT-03).
	Capability = "remote-jobs-v1"
	// FrameType is the type of the frames that carry them (RMT-04).
	FrameType = "remote-job"
	// ReadsCapability says that a PC also lets the owners of jobs read what these wrote
	// down and changed. ReadsFrameType is the type of the frames with that.
	ReadsCapability = "remote-reads-v1"
	ReadsFrameType  = "remote-read"
	// MaxPartBytes bounds one part of what is read.
	MaxPartBytes = 256 << 10

	maxPayloadBytes = 900 << 10 // it fits into a frame of 1 MiB with all around it
	maxErrorChars   = 2000
	maxApprovals    = 50
)

// Peer is who asks. ID and Name are what the link has proved; a request's own word
// for them counts nothing. Supervisor is the session behind it, by the identity that
// its own PC keeps for it: it means something together with ID only.
type Peer struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Supervisor string `json:"supervisor"`
}

// Owner is who a job on this PC belongs to, where a paired one asked for it (RMT-12).
func (p Peer) Owner() string { return p.ID + "/" + p.Supervisor }

// Operation is what a request asks for.
type Operation string

// The operations (RMT-05); there are no others.
const (
	Spawn    Operation = "spawn"
	State    Operation = "state"
	Control  Operation = "control"
	Approval Operation = "approval"
)

// The operations of ReadsFrameType; there are no others.
const (
	ReadLog  Operation = "log"
	ReadDiff Operation = "diff"
	// ReadResult reads by parts what came of a run: a PC has it that tells
	// Value.ResultBytes.
	ReadResult Operation = "result"
)

// IsRead reports whether an operation goes in frames of ReadsFrameType.
func (o Operation) IsRead() bool { return o == ReadLog || o == ReadDiff || o == ReadResult }

// Frame is the type of the frames that an operation goes in, and the capability that
// the other PC needs for it.
func (o Operation) Frame() (frameType, capability string) {
	if o.IsRead() {
		return ReadsFrameType, ReadsCapability
	}
	return FrameType, Capability
}

// Request is one request, checked.
type Request struct {
	Rid       string
	Peer      Peer // as the link has proved it
	Operation Operation
	Job       string // by the name that the asking PC has given it

	Spawn   job.Request // of Spawn
	Control ControlArgs // of Control
	// Of Approval.
	Approval string
	Decision job.Decision
	Reason   string
	// Of what is read: from which byte on, and of which version; "" is any.
	From int64
	Of   string
}

// ControlArgs is what a job is told: words and settings as message_subagent has them,
// or that it is to end; or what is fetched of it.
type ControlArgs struct {
	ID      string // of the words, so that they are said once
	Message job.Control
	Cancel  bool
	Result  int // which run's result is wanted; 0 for none
}

// Value is what a request is answered with.
type Value struct {
	State     *JobState      `json:"state"`
	Alive     bool           `json:"alive"`
	Approvals []job.Approval `json:"approvals"`
	// Delivery is what becomes of words, as message_subagent answers.
	Delivery job.Delivery `json:"delivery,omitempty"`
	// Result is what came of the run that was asked for.
	Result *runs.Envelope `json:"result,omitempty"`
	// ResultBytes is how many the whole result has, as JSON, where Result is not all of
	// it: ReadResult reads that.
	ResultBytes int64 `json:"resultBytes,omitempty"`
	// Part is what was read.
	Part *Part `json:"part,omitempty"`
}

// Part is a part of what a job wrote down or changed.
type Part struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"` // of the whole, in bytes
	// Of names this version of the whole: parts of two versions do not fit together.
	Of string `json:"of,omitempty"`
}

// JobState is a job as its own PC knows it.
type JobState struct {
	Job     string            `json:"job"`
	Status  job.State         `json:"status"`
	Title   string            `json:"title"`
	Model   string            `json:"model"`
	Effort  string            `json:"effort"`
	Access  string            `json:"access"`
	Layer   string            `json:"layer"`
	Step    string            `json:"step"`
	Workdir string            `json:"workdir"`
	Branch  string            `json:"branch,omitempty"`
	Session string            `json:"session,omitempty"`
	Tokens  int64             `json:"tokens"`
	CostUSD float64           `json:"costUsd"`
	Percent *int              `json:"percent,omitempty"`
	ETA     bridge.UnixMillis `json:"etaAt,omitempty"`
	Note    string            `json:"note,omitempty"`
	Wait    *job.Wait         `json:"wait,omitempty"`
	Started bridge.UnixMillis `json:"startedAt,omitempty"`
	EndedAt bridge.UnixMillis `json:"endedAt,omitempty"`
	Until   bridge.UnixMillis `json:"limitUntil,omitempty"`
	// Ended is why the last run that has ended did.
	Ended job.EndReason `json:"ended,omitempty"`
	Run   int           `json:"run"`
	// Results is the last run that has ended and whose result can be fetched; 0 is none.
	Results int `json:"results"`
	// Now is that PC's clock, by which all times here go.
	Now bridge.UnixMillis `json:"now"`
}

// payload is a remote-job frame's content.
type payload struct {
	Kind    string          `json:"kind"`
	Rid     string          `json:"rid"`
	Peer    *Peer           `json:"peer,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
	Error   *bridge.Error   `json:"error,omitempty"`
}

const (
	kindRequest  = "request"
	kindResponse = "response"
)

// request is what stands in a request, per operation; what does not belong to it is
// refused.
type request struct {
	Op       Operation       `json:"op"`
	Job      string          `json:"job"`
	Target   string          `json:"target,omitempty"` // of spawn: the kind of agent
	Ask      bool            `json:"ask,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	ID       string          `json:"id,omitempty"`
	Control  json.RawMessage `json:"control,omitempty"`
	Cancel   bool            `json:"cancel,omitempty"`
	Result   int             `json:"result,omitempty"`
	Decision string          `json:"decision,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	From     int64           `json:"from,omitempty"` // the byte at which the part begins
	Of       string          `json:"of,omitempty"`
}

// Response answers the request with the same Rid.
type Response struct {
	Rid   string
	Value Value
	Err   error
}

// Parse reads a remote-job frame's payload from the PC that the link has proved:
// either a request or a response. A request that is wrong is answered where it has a
// Rid: Request.Rid is set then, beside the error.
func Parse(data []byte, proved Peer) (*Request, *Response, error) {
	request, response, err := parse(data, proved)
	if request != nil && err == nil && request.Operation.IsRead() {
		err = bridge.Errorf(bridge.Invalid, "a remote job knows spawn, state, control and approval, not %q", request.Operation)
	}
	return request, response, err
}

// ParseRead is Parse for frames of ReadsFrameType.
func ParseRead(data []byte, proved Peer) (*Request, *Response, error) {
	request, response, err := parse(data, proved)
	if request != nil && err == nil && !request.Operation.IsRead() {
		err = bridge.Errorf(bridge.Invalid, "of a remote job log, diff and result can be read, not %q", request.Operation)
	}
	return request, response, err
}

func parse(data []byte, proved Peer) (*Request, *Response, error) {
	var p payload
	if err := bridge.DecodeStrict(data, maxPayloadBytes, &p); err != nil {
		return nil, nil, err
	}
	if uuid.Validate(p.Rid) != nil {
		return nil, nil, bridge.Errorf(bridge.Invalid, "rid must be a UUID")
	}
	switch {
	case p.Kind == kindResponse && p.Peer == nil && p.Request == nil && (p.Value == nil) != (p.Error == nil):
		response, err := parseResponse(p)
		return nil, response, err
	case p.Kind == kindRequest && p.Request != nil && p.Value == nil && p.Error == nil:
		asked := &Request{Rid: p.Rid, Peer: proved}
		return asked, nil, asked.parse(p)
	}
	return nil, nil, bridge.Errorf(bridge.Invalid, "a remote-job frame is a request with a request, or a response with a value or an error")
}

// parseResponse passes over what a newer Bridge adds to a value.
func parseResponse(p payload) (*Response, error) {
	response := &Response{Rid: p.Rid}
	if p.Error != nil {
		response.Err = &bridge.Error{Code: p.Error.Code, Message: cut(p.Error.Message)}
		return response, nil //nolint:nilerr // the answer is that error
	}
	if err := bridge.DecodeAdditive(p.Value, maxPayloadBytes, &response.Value); err != nil {
		return nil, err
	}
	return response, nil
}

// cut bounds what another PC says in an error.
func cut(text string) string { return cutTo(text, maxErrorChars) }

func (r *Request) parse(p payload) error {
	if p.Peer == nil || bridge.CheckID("supervisor", p.Peer.Supervisor) != nil {
		return bridge.Errorf(bridge.Invalid, "a request must name the supervisor behind it")
	}
	r.Peer.Supervisor = p.Peer.Supervisor // all else of a peer is what the link has proved
	var said request
	if err := bridge.DecodeStrict(p.Request, maxPayloadBytes, &said); err != nil {
		return err
	}
	if !job.IsName(said.Job) {
		return bridge.Errorf(bridge.Invalid, "%q is not the name of a job", said.Job)
	}
	r.Operation, r.Job = said.Op, said.Job
	only := request{Op: said.Op, Job: said.Job} // what the operation knows is added below
	var err error
	switch said.Op {
	case Spawn:
		only.Target, only.Ask, only.Args = said.Target, said.Ask, said.Args
		r.Spawn, err = parseSpawn(said)
	case State:
	case ReadLog, ReadDiff:
		only.From, only.Of = said.From, said.Of
		r.From, r.Of = said.From, said.Of
		err = checkRead(said)
	case ReadResult:
		only.From, only.Of, only.Result = said.From, said.Of, said.Result
		r.From, r.Of, r.Control.Result = said.From, said.Of, said.Result
		if err = checkRead(said); err == nil && said.Result < 1 {
			err = bridge.Errorf(bridge.Invalid, "result must name a run")
		}
	case Control:
		only.ID, only.Control, only.Cancel, only.Result = said.ID, said.Control, said.Cancel, said.Result
		r.Control, err = parseControl(said)
	case Approval:
		only.ID, only.Decision, only.Reason = said.ID, said.Decision, said.Reason
		r.Approval = said.ID
		r.Decision, r.Reason, err = parseAnswer(said)
	default:
		err = bridge.Errorf(bridge.Invalid, "a remote job knows spawn, state, control and approval, not %q", said.Op)
	}
	if err != nil {
		return err
	}
	if !equal(only, said) {
		return bridge.Errorf(bridge.Invalid, "%s was asked with members that belong to another operation", said.Op)
	}
	return nil
}

func equal(a, b request) bool {
	return a.Op == b.Op && a.Job == b.Job && a.Target == b.Target && a.Ask == b.Ask && a.ID == b.ID && a.Cancel == b.Cancel && a.Result == b.Result && a.From == b.From && a.Of == b.Of &&
		a.Decision == b.Decision && a.Reason == b.Reason && string(a.Args) == string(b.Args) && string(a.Control) == string(b.Control)
}

// parseSpawn reads the public arguments of spawn_* as a PC may send them: the folder
// named, and nothing that says how or with what to run (RMT-07, RMT-08).
func parseSpawn(said request) (job.Request, error) {
	kind, ask, isName := job.ParseName(said.Job)
	if !isName || string(kind) != said.Target || ask != said.Ask {
		return job.Request{}, bridge.Errorf(bridge.Invalid, "%q is not the name of a job of %s", said.Job, said.Target)
	}
	asked, err := job.ParseSpawn(kind, ask, said.Args)
	if err == nil && asked.Host != "" {
		err = bridge.Errorf(bridge.Denied, "a job for another PC runs on the PC that was asked, not on a third one")
	}
	if err != nil {
		return asked, err
	}
	return asked, CheckSpawn(asked)
}

// CheckSpawn refuses what no job on another PC may have, on both sides.
func CheckSpawn(asked job.Request) error {
	switch {
	case len(asked.SendTo) > 0:
		return bridge.Errorf(bridge.Denied, "send_to names sessions of one's own PC: a job on another one cannot have it")
	case asked.Cwd == "":
		return bridge.Errorf(bridge.Invalid, "a job on another PC needs cwd, an absolute path there")
	case asked.Kind == job.ACP:
		return bridge.Errorf(bridge.Unsupported, "jobs on another PC are of claude, codex, opencode or antigravity")
	}
	return nil
}

func checkRead(said request) error {
	if said.From < 0 || said.Of != "" && bridge.CheckID("of", said.Of) != nil {
		return bridge.Errorf(bridge.Invalid, "from must be a number of bytes, and of a version that was named before")
	}
	return nil
}

func parseControl(said request) (ControlArgs, error) {
	if said.Cancel || said.Result != 0 {
		if said.ID != "" || said.Control != nil || said.Cancel && said.Result != 0 || said.Result < 0 {
			return ControlArgs{}, bridge.Errorf(bridge.Invalid, "a cancellation, or the fetching of a run's result, says nothing else")
		}
		return ControlArgs{Cancel: said.Cancel, Result: said.Result}, nil
	}
	if err := bridge.CheckID("the message's id", said.ID); err != nil {
		return ControlArgs{}, err
	}
	var args job.MessageArgs
	if err := bridge.DecodeStrict(said.Control, maxPayloadBytes, &args); err != nil {
		return ControlArgs{}, err
	}
	control, err := args.Check()
	switch {
	case err != nil:
		return ControlArgs{}, err
	case control.Job != said.Job:
		return ControlArgs{}, bridge.Errorf(bridge.Invalid, "the request is about %s, its words about %q", said.Job, control.Job)
	case control.ApprovalID != "":
		return ControlArgs{}, bridge.Errorf(bridge.Invalid, "an answer to an approval is an operation of its own")
	}
	return ControlArgs{ID: said.ID, Message: control}, nil
}

func parseAnswer(said request) (job.Decision, string, error) {
	control, err := job.MessageArgs{Job: said.Job, ApprovalID: said.ID, Decision: said.Decision, Reason: said.Reason}.Check()
	return control.Decision, control.Reason, err
}

// EncodeRequest makes the payload of a request. peer is what the other side reads of
// us besides what the link proves.
func EncodeRequest(r Request, args json.RawMessage) ([]byte, error) {
	said := request{Op: r.Operation, Job: r.Job}
	switch r.Operation {
	case Spawn:
		said.Target, said.Ask, said.Args = string(r.Spawn.Kind), r.Spawn.Ask, args
	case Control:
		said.Cancel, said.Result = r.Control.Cancel, r.Control.Result
		if !said.Cancel && said.Result == 0 {
			said.ID, said.Control = r.Control.ID, args
		}
	case Approval:
		said.ID, said.Decision, said.Reason = r.Approval, string(r.Decision), r.Reason
	case ReadLog, ReadDiff:
		said.From, said.Of = r.From, r.Of
	case ReadResult:
		said.From, said.Of, said.Result = r.From, r.Of, r.Control.Result
	case State:
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	return encode(payload{Kind: kindRequest, Rid: r.Rid, Peer: &r.Peer, Request: text})
}

// EncodeResponse makes the payload of a response; an error is bounded and says no
// more than its sentence.
func EncodeResponse(r Response) ([]byte, error) {
	p := payload{Kind: kindResponse, Rid: r.Rid}
	if r.Err != nil {
		p.Error = &bridge.Error{Code: bridge.CodeOf(r.Err), Message: cut(said(r.Err))}
		return encode(p)
	}
	r.Value.Approvals = openFirst(r.Value.Approvals)
	if r.Value.Approvals == nil {
		r.Value.Approvals = []job.Approval{}
	}
	value, err := json.Marshal(r.Value)
	if err != nil {
		return nil, err
	}
	p.Value = value
	return encode(p)
}

// openFirst are as many approvals as are told: those that somebody has to answer before
// those that were asked last.
func openFirst(all []job.Approval) []job.Approval {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b job.Approval) int {
		if one, other := a.State == job.ApprovalAsked, b.State == job.ApprovalAsked; one != other {
			return map[bool]int{true: -1, false: 1}[one]
		}
		return cmp.Compare(b.AskedAt, a.AskedAt)
	})
	return list[:min(len(list), maxApprovals)]
}

// said is an error's sentence, if it is one for people.
func said(err error) string {
	if bridge.CodeOf(err) == bridge.Internal {
		return "something went wrong there: its log says what"
	}
	return err.Error()
}

func encode(p payload) ([]byte, error) {
	data, err := json.Marshal(p)
	if err == nil && len(data) > maxPayloadBytes {
		err = bridge.Errorf(bridge.TooLarge, "this needs %d bytes on the link: at most %d fit", len(data), maxPayloadBytes)
	}
	return data, err
}

// SplitName parts <host>/<name>; a name without a host is of this PC.
func SplitName(name string) (host, local string) {
	host, local, found := strings.Cut(name, "/")
	if !found {
		return "", name
	}
	return host, local
}

// Agents are the kinds that a policy can allow.
func Agents() []bridge.AgentKind {
	return slices.DeleteFunc(job.Kinds(), func(kind bridge.AgentKind) bool { return kind == job.ACP })
}

// MaxNameChars is the length of the longest name of a PC.
const MaxNameChars = 40

// CheckName refuses a name that no PC may have: it stands before a slash in
// addresses such as laptop/api, on pages and in policies.
func CheckName(name string) error {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '-' && r != '_' && r != '.') {
			return bridge.Errorf(bridge.Invalid, "a PC's name has letters, digits, -, _ and . only and begins with a letter or digit: %q does not", name)
		}
	}
	if name == "" || len(name) > MaxNameChars {
		return bridge.Errorf(bridge.Invalid, "a PC's name has 1 to %d characters", MaxNameChars)
	}
	return nil
}

// PC is another PC, by the identity that the transport has proved and the name that
// this one calls it by.
type PC struct {
	ID   string
	Name string
}
