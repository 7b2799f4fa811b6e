// Package remote has the rules for jobs, messages, decisions and lists between paired
// PCs: what one PC may request of another, whether the other's owner permits it, and
// how often. It does no I/O: the link has proved the requester's identity, and the
// caller has resolved paths.
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
	// Capability announces in a hello that a PC supports these requests (RMT-03).
	Capability = "remote-jobs-v1"
	// FrameType is the type of their frames (RMT-04).
	FrameType = "remote-job"
	// ReadsCapability announces that a PC also lets jobs' owners read their logs and
	// changes. ReadsFrameType is the type of those frames.
	ReadsCapability = "remote-reads-v1"
	ReadsFrameType  = "remote-read"
	// MaxPartBytes limits one part of a read.
	MaxPartBytes = 256 << 10

	maxPayloadBytes = 900 << 10 // so that a frame of 1 MiB also has room for its envelope
	maxErrorChars   = 2000
	maxApprovals    = 50
)

// Peer is the requester. The link has proved ID and Name; the values in a request do
// not count. Supervisor is the session behind it, by its identity on its own PC. It is
// meaningful only together with ID.
type Peer struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Supervisor string `json:"supervisor"`
}

// Owner returns the owner of a job on this PC that a paired one requested (RMT-12).
func (p Peer) Owner() string { return p.ID + "/" + p.Supervisor }

// Operation is the operation of a request.
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
	// ReadResult reads the result of a run in parts. A PC supports it if it sends
	// Value.ResultBytes.
	ReadResult Operation = "result"
)

// IsRead reports whether an operation uses frames of ReadsFrameType.
func (o Operation) IsRead() bool { return o == ReadLog || o == ReadDiff || o == ReadResult }

// Frame returns the frame type of an operation, and the capability that the other PC
// needs for it.
func (o Operation) Frame() (frameType, capability string) {
	if o.IsRead() {
		return ReadsFrameType, ReadsCapability
	}
	return FrameType, Capability
}

// Request is one validated request.
type Request struct {
	Rid       string
	Peer      Peer // proved by the link
	Operation Operation
	Job       string // the job's name at the requesting PC

	Spawn   job.Request // of Spawn
	Control ControlArgs // of Control
	// These fields are for Approval.
	Approval string
	Decision job.Decision
	Reason   string
	// These fields are for reads: the first byte, and the version; "" is any.
	From int64
	Of   string
}

// ControlArgs is a control of a job: a message and settings as in message_subagent, or
// a cancel, or a request for a result.
type ControlArgs struct {
	ID      string // of the message, so that it is sent only once
	Message job.Control
	Cancel  bool
	Result  int // the run whose result is requested; 0 for none
}

// Value is the answer to a request.
type Value struct {
	State     *JobState      `json:"state"`
	Alive     bool           `json:"alive"`
	Approvals []job.Approval `json:"approvals"`
	// Delivery is the delivery of a message, as in message_subagent.
	Delivery job.Delivery `json:"delivery,omitempty"`
	// Result is the result of the requested run.
	Result *runs.Envelope `json:"result,omitempty"`
	// ResultBytes is the size of the full result as JSON, if Result is only a part:
	// then ReadResult reads it.
	ResultBytes int64 `json:"resultBytes,omitempty"`
	// Part is the part that was read.
	Part *Part `json:"part,omitempty"`
}

// Part is a part of a job's log, changes or result.
type Part struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"` // of the whole, in bytes
	// Of identifies the version of the whole: parts of two versions do not match.
	Of string `json:"of,omitempty"`
}

// JobState is the state of a job at its own PC.
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
	// Ended is why the last ended run ended.
	Ended job.EndReason `json:"ended,omitempty"`
	Run   int           `json:"run"`
	// Results is the last ended run with an available result; 0 is none.
	Results int `json:"results"`
	// Now is that PC's clock, which all times here use.
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

// request has the members of a request. Members of another operation are refused.
type request struct {
	Op       Operation       `json:"op"`
	Job      string          `json:"job"`
	Target   string          `json:"target,omitempty"` // for spawn: the kind of agent
	Ask      bool            `json:"ask,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	ID       string          `json:"id,omitempty"`
	Control  json.RawMessage `json:"control,omitempty"`
	Cancel   bool            `json:"cancel,omitempty"`
	Result   int             `json:"result,omitempty"`
	Decision string          `json:"decision,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	From     int64           `json:"from,omitempty"` // the first byte of the part
	Of       string          `json:"of,omitempty"`
}

// Response answers the request with the same Rid.
type Response struct {
	Rid   string
	Value Value
	Err   error
}

// Parse decodes a remote-job frame's payload from the PC that the link has proved: a
// request or a response. It fails with Invalid for any other payload, and with TooLarge
// beyond the frame limit. If an invalid request has a Rid, Request.Rid is set together
// with the error, so that it can be answered.
func Parse(data []byte, proved Peer) (*Request, *Response, error) {
	request, response, err := parse(data, proved)
	if request != nil && err == nil && request.Operation.IsRead() {
		err = bridge.Errorf(bridge.Invalid, "a remote job knows spawn, state, control and approval, not %q", request.Operation)
	}
	return request, response, err
}

// ParseRead is Parse for frames of ReadsFrameType. It fails as Parse does, and with
// Invalid for a request that is no read.
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
		request := &Request{Rid: p.Rid, Peer: proved}
		return request, nil, request.parse(p)
	}
	return nil, nil, bridge.Errorf(bridge.Invalid, "a remote-job frame is a request with a request, or a response with a value or an error")
}

// parseResponse ignores members of a newer Bridge.
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

// cut limits another PC's text in an error.
func cut(text string) string { return cutTo(text, maxErrorChars) }

func (r *Request) parse(p payload) error {
	if p.Peer == nil || bridge.CheckID("supervisor", p.Peer.Supervisor) != nil {
		return bridge.Errorf(bridge.Invalid, "a request must name the supervisor behind it")
	}
	r.Peer.Supervisor = p.Peer.Supervisor // the link has proved the rest of the peer
	var body request
	if err := bridge.DecodeStrict(p.Request, maxPayloadBytes, &body); err != nil {
		return err
	}
	if !job.IsName(body.Job) {
		return bridge.Errorf(bridge.Invalid, "%q is not the name of a job", body.Job)
	}
	r.Operation, r.Job = body.Op, body.Job
	only := request{Op: body.Op, Job: body.Job} // members of the operation are added below
	var err error
	switch body.Op {
	case Spawn:
		only.Target, only.Ask, only.Args = body.Target, body.Ask, body.Args
		r.Spawn, err = parseSpawn(body)
	case State:
	case ReadLog, ReadDiff:
		only.From, only.Of = body.From, body.Of
		r.From, r.Of = body.From, body.Of
		err = checkRead(body)
	case ReadResult:
		only.From, only.Of, only.Result = body.From, body.Of, body.Result
		r.From, r.Of, r.Control.Result = body.From, body.Of, body.Result
		if err = checkRead(body); err == nil && body.Result < 1 {
			err = bridge.Errorf(bridge.Invalid, "result must name a run")
		}
	case Control:
		only.ID, only.Control, only.Cancel, only.Result = body.ID, body.Control, body.Cancel, body.Result
		r.Control, err = parseControl(body)
	case Approval:
		only.ID, only.Decision, only.Reason = body.ID, body.Decision, body.Reason
		r.Approval = body.ID
		r.Decision, r.Reason, err = parseAnswer(body)
	default:
		err = bridge.Errorf(bridge.Invalid, "a remote job knows spawn, state, control and approval, not %q", body.Op)
	}
	if err != nil {
		return err
	}
	if !equal(only, body) {
		return bridge.Errorf(bridge.Invalid, "%s was asked with members that belong to another operation", body.Op)
	}
	return nil
}

func equal(a, b request) bool {
	return a.Op == b.Op && a.Job == b.Job && a.Target == b.Target && a.Ask == b.Ask && a.ID == b.ID && a.Cancel == b.Cancel && a.Result == b.Result && a.From == b.From && a.Of == b.Of &&
		a.Decision == b.Decision && a.Reason == b.Reason && string(a.Args) == string(b.Args) && string(a.Control) == string(b.Control)
}

// parseSpawn decodes the public arguments of spawn_* that a PC may send. They name the
// folder, and not how or with what to run (RMT-07, RMT-08).
func parseSpawn(body request) (job.Request, error) {
	kind, ask, isName := job.ParseName(body.Job)
	if !isName || string(kind) != body.Target || ask != body.Ask {
		return job.Request{}, bridge.Errorf(bridge.Invalid, "%q is not the name of a job of %s", body.Job, body.Target)
	}
	requested, err := job.ParseSpawn(kind, ask, body.Args)
	if err == nil && requested.Host != "" {
		err = bridge.Errorf(bridge.Denied, "a job for another PC runs on the PC that was asked, not on a third one")
	}
	if err != nil {
		return requested, err
	}
	return requested, CheckSpawn(requested)
}

// CheckSpawn refuses options that no job on another PC may have, on both sides. It
// fails with Denied for SendTo, with Invalid without Cwd, and with Unsupported for an
// ACP agent.
func CheckSpawn(request job.Request) error {
	switch {
	case len(request.SendTo) > 0:
		return bridge.Errorf(bridge.Denied, "send_to names sessions of one's own PC: a job on another one cannot have it")
	case request.Cwd == "":
		return bridge.Errorf(bridge.Invalid, "a job on another PC needs cwd, an absolute path there")
	case request.Kind == job.ACP:
		return bridge.Errorf(bridge.Unsupported, "jobs on another PC are of claude, codex, opencode or antigravity")
	}
	return nil
}

func checkRead(body request) error {
	if body.From < 0 || body.Of != "" && bridge.CheckID("of", body.Of) != nil {
		return bridge.Errorf(bridge.Invalid, "from must be a number of bytes, and of a version that was named before")
	}
	return nil
}

func parseControl(body request) (ControlArgs, error) {
	if body.Cancel || body.Result != 0 {
		if body.ID != "" || body.Control != nil || body.Cancel && body.Result != 0 || body.Result < 0 {
			return ControlArgs{}, bridge.Errorf(bridge.Invalid, "a cancellation, or the fetching of a run's result, says nothing else")
		}
		return ControlArgs{Cancel: body.Cancel, Result: body.Result}, nil
	}
	if err := bridge.CheckID("the message's id", body.ID); err != nil {
		return ControlArgs{}, err
	}
	var args job.MessageArgs
	if err := bridge.DecodeStrict(body.Control, maxPayloadBytes, &args); err != nil {
		return ControlArgs{}, err
	}
	control, err := args.Check()
	switch {
	case err != nil:
		return ControlArgs{}, err
	case control.Job != body.Job:
		return ControlArgs{}, bridge.Errorf(bridge.Invalid, "the request is about %s, its words about %q", body.Job, control.Job)
	case control.ApprovalID != "":
		return ControlArgs{}, bridge.Errorf(bridge.Invalid, "an answer to an approval is an operation of its own")
	}
	return ControlArgs{ID: body.ID, Message: control}, nil
}

func parseAnswer(body request) (job.Decision, string, error) {
	control, err := job.MessageArgs{Job: body.Job, ApprovalID: body.ID, Decision: body.Decision, Reason: body.Reason}.Check()
	return control.Decision, control.Reason, err
}

// EncodeRequest returns the payload of a request. r.Peer is our identity for the other
// side, in addition to the link's proof. It fails with TooLarge beyond the frame limit.
func EncodeRequest(r Request, args json.RawMessage) ([]byte, error) {
	body := request{Op: r.Operation, Job: r.Job}
	switch r.Operation {
	case Spawn:
		body.Target, body.Ask, body.Args = string(r.Spawn.Kind), r.Spawn.Ask, args
	case Control:
		body.Cancel, body.Result = r.Control.Cancel, r.Control.Result
		if !body.Cancel && body.Result == 0 {
			body.ID, body.Control = r.Control.ID, args
		}
	case Approval:
		body.ID, body.Decision, body.Reason = r.Approval, string(r.Decision), r.Reason
	case ReadLog, ReadDiff:
		body.From, body.Of = r.From, r.Of
	case ReadResult:
		body.From, body.Of, body.Result = r.From, r.Of, r.Control.Result
	case State:
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return encode(payload{Kind: kindRequest, Rid: r.Rid, Peer: &r.Peer, Request: text})
}

// EncodeResponse returns the payload of a response. Of an error it sends only the code
// and a limited sentence. It fails with TooLarge beyond the frame limit.
func EncodeResponse(r Response) ([]byte, error) {
	p := payload{Kind: kindResponse, Rid: r.Rid}
	if r.Err != nil {
		p.Error = &bridge.Error{Code: bridge.CodeOf(r.Err), Message: cut(sentenceOf(r.Err))}
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

// openFirst returns the approvals to send: those without an answer first, then the
// newest.
func openFirst(all []job.Approval) []job.Approval {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b job.Approval) int {
		if isOpen, other := a.State == job.ApprovalAsked, b.State == job.ApprovalAsked; isOpen != other {
			return map[bool]int{true: -1, false: 1}[isOpen]
		}
		return cmp.Compare(b.AskedAt, a.AskedAt)
	})
	return list[:min(len(list), maxApprovals)]
}

// sentenceOf returns an error's sentence, if it is meant for people.
func sentenceOf(err error) string {
	if bridge.CodeOf(err) == bridge.Internal {
		return "something went wrong there: its log says what"
	}
	return err.Error()
}

func encode(p payload) ([]byte, error) {
	data, err := json.Marshal(p)
	if err == nil && len(data) > maxPayloadBytes {
		err = bridge.Errorf(bridge.TooLarge, "this needs %s on the link: at most %d fit", bridge.Counted(len(data), "byte"), maxPayloadBytes)
	}
	return data, err
}

// SplitName splits <host>/<name>; a name without a host belongs to this PC.
func SplitName(name string) (host, local string) {
	host, local, found := strings.Cut(name, "/")
	if !found {
		return "", name
	}
	return host, local
}

// Agents returns the kinds that a policy can permit.
func Agents() []bridge.AgentKind {
	return slices.DeleteFunc(job.Kinds(), func(kind bridge.AgentKind) bool { return kind == job.ACP })
}

// MaxNameChars is the maximum length of a PC's name.
const MaxNameChars = 40

// CheckName fails with Invalid unless a PC may have the name. The name precedes a slash
// in addresses such as laptop/api, on pages and in policies.
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

// PC is another PC, with the identity that the transport has proved and its name on
// this PC.
type PC struct {
	ID   string
	Name string
}
