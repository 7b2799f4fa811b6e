package hooks

import (
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// The lines between opencode's plugin (agent/setup/opencode/bridge.js) and its child
// process `bridge plugin opencode [--home DIR]`: one JSON object a line, in both
// directions, UTF-8, at most bridge.MaxFrameBytes each.
//
// The plugin writes PluginRequest. The child answers each request with an id by one
// PluginReply with the same id, in any order. The plugin drops a reply after more than
// a second and returns its lease: the mail is offered again. The child also sends
// PluginPush at any time. It ends when its standard input closes; it must never write
// anything else to standard output.
//
//	plugin → child  {"id":1,"event":"session.created","call":{"sessionId":"ses_1","cwd":"/p"}}
//	plugin → child  {"id":2,"event":"chat.message","call":{"sessionId":"ses_1","prompt":"hi"}}
//	child → plugin  {"id":2,"text":"mail for you…","lease":{"id":"L1","recipient":"…","messages":["…"]}}
//	plugin → child  {"id":3,"confirm":{"lease":{…},"stage":"handed","detail":"step"}}
//	child → plugin  {"id":3}
//	plugin → child  {"id":4,"back":"L2"}
//	child → plugin  {"mail":"ses_1","wake":true}
//	plugin → child  {"prompt":{"id":"per_1","call":{"sessionId":"ses_1"},"permission":"bash","metadata":{"command":"make"}}}
//	child → plugin  {"answer":{"id":"per_1","allow":true}}
//	plugin → child  {"prompt":{"id":"que_1","call":{"sessionId":"ses_1"},"questions":[{"question":"Which?","options":[{"label":"A"}]}]}}
//	child → plugin  {"answer":{"id":"que_1","allow":true,"answers":[["A"]]}}
//	plugin → child  {"settled":{"id":"per_1","event":"delivered"}}
//	plugin → child  {"settled":{"id":"per_1","event":"allowed"}}
//
// If a push has wake while the session is idle, the plugin sends session.idle again; the
// text of that reply starts a turn. So the broker alone decides, at session.idle,
// whether to wake the session.

// PluginRequest is one line from the plugin: an event with its call, Ack, or Back.
type PluginRequest struct {
	ID    int64           `json:"id"`                // the number of the request
	Event string          `json:"event,omitempty"`   // opencode's event name, for ParseHook
	Call  json.RawMessage `json:"call,omitempty"`    // PluginCall, for ParseHook
	Ack   *PluginAck      `json:"confirm,omitempty"` // the outcome of a lease
	Back  string          `json:"back,omitempty"`    // a lease's id: it reached no session

	Prompt  *PluginPrompt  `json:"prompt,omitempty"`
	Settled *PluginSettled `json:"settled,omitempty"`
}

// PluginPrompt is a permission prompt in opencode's terminal. It has no reply:
// PluginPush.Answer follows if the owner answers, and the plugin reports the outcome
// with PluginSettled.
type PluginPrompt struct {
	ID         Text            `json:"id"` // opencode's own
	Call       json.RawMessage `json:"call"`
	Permission Text            `json:"permission"`
	Patterns   []string        `json:"patterns"`
	Metadata   json.RawMessage `json:"metadata"`
	// Questions are the model's questions, instead of a permission.
	Questions json.RawMessage `json:"questions,omitempty"`
}

// PluginSettled reports the outcome of a prompt: opencode has the answer (delivered),
// or reports that it was allowed or refused.
type PluginSettled struct {
	ID    string `json:"id"`
	Event string `json:"event"`
}

// PluginAnswer is the owner's answer to a prompt.
type PluginAnswer struct {
	ID      string `json:"id"`
	Allow   bool   `json:"allow"`
	Message string `json:"message,omitempty"` // of a refusal, for the model
	// Answers are the chosen answers for each question, in order.
	Answers [][]string `json:"answers,omitempty"`
}

// PluginCall is the plugin's data about an event. A call from a child session has its
// root in SessionID and itself in ChildID.
type PluginCall struct {
	SessionID  Text `json:"sessionId"`
	ChildID    Text `json:"childId,omitempty"`
	ChildTitle Text `json:"childTitle,omitempty"`
	Cwd        Text `json:"cwd,omitempty"`
	Prompt     Text `json:"prompt,omitempty"`
	ToolUseID  Text `json:"toolUseId,omitempty"`
	Tool       Text `json:"tool,omitempty"` // its name, after a call
}

// PluginAck reports that the text of a lease was stored in the session. Detail is
// "step" for a current turn and "turn" for a new one.
type PluginAck struct {
	Lease  session.Lease `json:"loan"`
	Stage  bridge.Stage  `json:"stage"`
	Detail string        `json:"detail"`
}

// PluginReply answers a request. Text is "" if there is no text, and then there is no
// lease. Error is only for the plugin's log.
type PluginReply struct {
	ID    int64          `json:"id"` // the number of the request
	Text  string         `json:"text,omitempty"`
	Lease *session.Lease `json:"loan,omitempty"`
	Error string         `json:"error,omitempty"`
}

// PluginPush notifies the plugin of durable mail for a root session, or of the owner's
// answer to a prompt.
type PluginPush struct {
	Mail string `json:"mail,omitempty"` // opencode session id
	Wake bool   `json:"wake,omitempty"` // the wake policy permits it to start a turn

	Answer *PluginAnswer `json:"answer,omitempty"`
}
