package clidata

import (
	"context"
	"os"
	"path"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// Claude reads the store of Claude Code.
var Claude = Store{
	Kind: bridge.Claude,
	children: func(_ context.Context, from conversation) ([]session.Child, error) {
		return claudeChildren(from.folder, from.sessionID, from.cwd)
	},
	records: func(_ context.Context, from conversation, look func([]byte)) error {
		return eachRecord(from.folder, claudeTranscript(from.folder, from.sessionID, from.cwd), look)
	},
	busySince: ClaudeBusySince,
	idleSince: ClaudeIdleSince,
}

// claudeTranscript returns the file of a Claude Code session below folder, or "".
func claudeTranscript(folder, sessionID, cwd string) string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it was only read
	projects, err := claudeProjects(root, sessionID, cwd)
	if err != nil {
		return ""
	}
	for _, project := range projects {
		if name := path.Join("projects", project, sessionID+".jsonl"); exists(root, name) {
			return name
		}
	}
	return ""
}
