package clidata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
)

// Children lists the native children of a session as the CLI's own store in
// folder holds them, oldest first: children of children too, since they are at
// work for the same session. It only reads: it makes no file, takes no lock that
// a writer would wait for, and follows no link out of the folder. A store or
// session that is not there has no children. A store in a form that this Bridge
// does not know is bridge.Unsupported, with a sentence for people.
func Children(ctx context.Context, kind bridge.AgentKind, folder, sessionID, cwd string) ([]session.Child, error) {
	if folder == "" || !isStoredID(sessionID) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var children []session.Child
	var err error
	switch kind {
	case bridge.Claude:
		children, err = claudeChildren(folder, sessionID, cwd)
	case bridge.Codex:
		children, err = codexChildren(ctx, folder, sessionID)
	case bridge.OpenCode:
		children, err = openCodeChildren(ctx, filepath.Join(folder, "opencode.db"), sessionID)
	default:
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil && bridge.CodeOf(err) != bridge.Unsupported {
		return nil, bridge.WithCause(bridge.Unsupported, err, fmt.Sprintf("%s's own store could not be read (%v)", kind, hooks.ShortReason(err.Error())))
	}
	return children, err
}

// childTitleOf makes one printable line of what a store calls a child.
func childTitleOf(words string) string {
	words = strings.ToValidUTF8(words[:min(len(words), maxStoredBytes)], "")
	return hooks.Shorten(bridge.VisibleLine(strings.Join(strings.Fields(words), " ")), maxChildTitle)
}
