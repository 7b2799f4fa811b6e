package clidata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
)

// Children returns the native children of a session from the CLI's own store in
// folder, oldest first. It includes children of children, because they work for the
// same session. It only reads: it creates no file, takes no lock that blocks a
// writer, and follows no link out of the folder. A missing store or session has no
// children. It fails with Unsupported, with a readable sentence, for an unknown
// form of the store.
func (s Store) Children(ctx context.Context, folder, sessionID, cwd string) ([]session.Child, error) {
	if s.children == nil || folder == "" || !isStoredID(sessionID) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	children, err := s.children(ctx, conversation{folder, sessionID, cwd})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil && bridge.CodeOf(err) != bridge.Unsupported {
		return nil, bridge.WithCause(bridge.Unsupported, err, fmt.Sprintf("%s's own store could not be read (%v)", s.Kind, hooks.ShortReason(err.Error())))
	}
	return children, err
}

// childTitleOf returns a store's title of a child as one printable line.
func childTitleOf(words string) string {
	words = strings.ToValidUTF8(words[:min(len(words), maxStoredBytes)], "")
	return hooks.Shorten(bridge.VisibleLine(strings.Join(strings.Fields(words), " ")), maxChildTitle)
}
