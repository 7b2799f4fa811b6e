package clidata

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
)

// claudeChildren reads projects/<project>/<session>/subagents/agent-<id>.meta.json.
// A child belongs to the session by its folder; if its transcript already exists,
// that must agree.
func claudeChildren(folder, sessionID, cwd string) ([]session.Child, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	dir, err := claudeSubagents(root, sessionID, cwd)
	if dir == "" || err != nil {
		return nil, err
	}
	names, err := namesIn(root, dir)
	if err != nil {
		return nil, err
	}
	var children []session.Child
	described := 0
	for _, name := range names {
		id, isMeta := strings.CutSuffix(strings.TrimPrefix(name, "agent-"), ".meta.json")
		if !isMeta || "agent-"+id+".meta.json" != name || !isStoredID(id) {
			continue
		}
		described++
		child, ok := claudeChild(root, path.Join(dir, name), id)
		if ok && claudeParent(root, path.Join(dir, "agent-"+id+".jsonl"), sessionID, id) {
			children = append(children, child)
		}
	}
	if described > 0 && len(children) == 0 {
		return nil, unknownForm(bridge.Claude, "none of the "+path.Base(dir)+" of this session can be read")
	}
	slices.SortFunc(children, func(a, b session.Child) int { return cmp.Compare(a.At, b.At) })
	return children[max(0, len(children)-maxStoredChildren):], nil
}

// claudeSubagents returns the session's folder of children: below the project of
// its working folder, or else below any project. It returns "" if there is none.
func claudeSubagents(root *os.Root, sessionID, cwd string) (string, error) {
	projects, err := claudeProjects(root, sessionID, cwd)
	if err != nil {
		return "", err
	}
	for _, project := range projects {
		dir := path.Join("projects", project, sessionID, "subagents")
		if info, err := root.Lstat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", nil
}

// claudeProjects returns the project with the session's transcript: that of its
// working folder, or else all projects.
func claudeProjects(root *os.Root, sessionID, cwd string) ([]string, error) {
	slug := hooks.ClaudeProject(cwd)
	if slug != "" && exists(root, path.Join("projects", slug, sessionID+".jsonl")) {
		return []string{slug}, nil
	}
	return namesIn(root, "projects")
}

// namesIn lists a folder below root, up to the limit.
func namesIn(root *os.Root, dir string) ([]string, error) {
	opened, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(maxStoredEntries)
	if len(names) > 0 || err == nil {
		return names, nil
	}
	return nil, nil // io.EOF of an empty folder, or a file with its name
}

// claudeChild reads one description. ok requires that it names the started agent.
func claudeChild(root *os.Root, name, id string) (session.Child, bool) {
	raw, changed, err := readStored(root, name, false)
	if err != nil {
		return session.Child{}, false
	}
	var meta struct {
		AgentType   hooks.Text  `json:"agentType"`
		Description hooks.Text  `json:"description"`
		Finished    hooks.Truth `json:"finished"`
		Stopped     hooks.Truth `json:"stoppedByUser"`
		Swept       hooks.Truth `json:"sweptByStop"`
	}
	if json.Unmarshal(raw, &meta) != nil || meta.AgentType == "" && meta.Description == "" {
		return session.Child{}, false
	}
	return session.Child{
		ID: id, Title: childTitleOf(string(cmp.Or(meta.Description, meta.AgentType))), Stored: true,
		Done: bool(meta.Finished || meta.Stopped || meta.Swept), At: changed.UnixMilli(),
	}, true
}

// claudeParent reports whether the child's transcript, if it already exists, names
// the session and the child.
func claudeParent(root *os.Root, name, sessionID, id string) bool {
	raw, _, err := readStored(root, name, false)
	if err != nil {
		return !exists(root, name)
	}
	line, _, whole := bytes.Cut(raw, []byte("\n"))
	var first struct {
		SessionID hooks.Text `json:"sessionId"`
		AgentID   hooks.Text `json:"agentId"`
	}
	if !whole { // being written, or one long line: only its folder identifies it
		return true
	}
	return json.Unmarshal(line, &first) == nil && string(first.SessionID) == sessionID && string(first.AgentID) == id
}

func exists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}
