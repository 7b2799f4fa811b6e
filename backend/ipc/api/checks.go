package api

import (
	"path/filepath"

	"bridge/backend/bridge"
)

// What arguments must be by themselves, whoever says them.

// Check refuses a registration of no kind, or by what is no name, folder or id.
func (r Register) Check() error {
	if _, err := bridge.ParseKind(string(r.Kind)); err != nil {
		return err
	}
	if r.Name != "" {
		if err := bridge.CheckName(r.Name); err != nil {
			return err
		}
	}
	if r.Cwd != "" && !filepath.IsAbs(r.Cwd) {
		return bridge.Errorf(bridge.Invalid, "the working folder %q is not absolute", r.Cwd)
	}
	for what, id := range map[string]string{"the host session id": r.SessionID, "the previous id": r.Previous} {
		if id == "" {
			continue
		}
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}

// Check refuses a message without a text or a target, and ids that are none.
func (a SendArgs) Check() error {
	if err := bridge.CheckText("the message", a.Body, bridge.MaxBodyChars); err != nil {
		return err
	}
	if a.To == "" {
		return bridge.Errorf(bridge.Invalid, "the target must not be empty: name a session, or * for all")
	}
	for what, id := range map[string]string{
		"reply_to": a.ReplyTo, "conversation_id": a.ConversationID, "message_id": a.MessageID,
	} {
		if id == "" {
			continue
		}
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}
