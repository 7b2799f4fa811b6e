package hooks

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
)

// maxHookInput limits the input of one hook call. It is large, because the input
// includes tool results; a larger one is refused, not cut.
const maxHookInput = 16 << 20

// maxPromptChars limits the stored prompt of a hook call. It fits the owner's longest
// message in codex's queue, to recognize that message (CHT-09), but no pasted file.
const maxPromptChars = bridge.MaxOwnerBodyChars + len(chat.OwnerLabel)

// decodeHook decodes the host's JSON into dst. It ignores unknown members and members
// of a wrong type, because the hosts change these formats between releases. It fails
// with TooLarge or Invalid.
func decodeHook(stdin []byte, dst any) error {
	if len(stdin) > maxHookInput {
		return bridge.Errorf(bridge.TooLarge, "the hook input is larger than %d bytes", maxHookInput)
	}
	if err := json.Unmarshal(bytes.TrimPrefix(stdin, []byte("\ufeff")), dst); err != nil {
		return errNoObject()
	}
	return nil
}

func errNoObject() error { return bridge.Errorf(bridge.Invalid, "the hook input is not a JSON object") }

// Text is a JSON string; any other value reads as "".
type Text string

// UnmarshalJSON never fails: see decodeHook.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = Text(s)
	}
	return nil
}

// Truth is a JSON boolean, or its word in a string, as some hosts send it.
type Truth bool

// UnmarshalJSON never fails: see decodeHook.
func (f *Truth) UnmarshalJSON(data []byte) error {
	word := strings.ToLower(strings.Trim(string(data), `" `))
	*f = word == "true" || word == "1"
	return nil
}

// checkIdentity refuses a call without a valid session id. The store keeps the id after
// the call, so the rule for ids applies.
func checkIdentity(call session.HookCall) error {
	if err := bridge.CheckID("the session id", call.SessionID); err != nil {
		return err
	}
	if call.ChildID == "" {
		return nil
	}
	return bridge.CheckID("the child's id", call.ChildID)
}

// Shorten cuts s to at most maxChars characters of valid UTF-8.
func Shorten(s string, maxChars int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxChars || utf8.RuneCountInString(s) <= maxChars {
		return s
	}
	return string([]rune(s)[:maxChars])
}

// maxReasonChars limits the quoted CLI text in a reason.
const maxReasonChars = 160

// ShortReason returns the text of a CLI or an error as one short line for people.
func ShortReason(words string) string {
	words = strings.TrimRight(strings.Join(strings.Fields(words), " "), ".:")
	if words == "" {
		return "it said nothing"
	}
	return Shorten(words, maxReasonChars)
}

// Encode returns value as one line of JSON without HTML escapes, because the text is
// for a model.
func Encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte("{}") // unreachable: only maps and strings come here
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// nothing returns the answer that every host accepts as "continue".
func nothing() []byte { return []byte("{}") }
