package clidata

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
)

// codexState is the name of codex's index of threads; its number increases with its
// version.
var codexState = regexp.MustCompile(`^state_([0-9]{1,6})\.sqlite$`)

// codexChildren reads the descendants of the session's thread from codex's index.
// An edge counts only if the child's own record names the same parent.
func codexChildren(ctx context.Context, folder, sessionID string) ([]session.Child, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	index, err := codexIndex(root)
	if err != nil {
		return nil, err
	}
	var threads []codexThread
	err = readDatabase(filepath.Join(folder, index), func(db *sql.DB) error {
		if err := checkCodexIndex(ctx, db, index); err != nil {
			return err
		}
		threads, err = codexThreads(ctx, db, sessionID)
		return err
	})
	if err != nil {
		return nil, err
	}
	threads = familyOf(sessionID, threads)
	var children []session.Child
	for _, thread := range threads[max(0, len(threads)-maxStoredChildren):] {
		children = append(children, thread.child(root, folder))
	}
	return children, nil
}

// familyOf keeps the threads whose two parent records agree up to the session,
// oldest first: codex's ids start with the time. Parents precede their children in
// threads.
func familyOf(sessionID string, threads []codexThread) []codexThread {
	family := map[string]bool{sessionID: true}
	var kept []codexThread
	for _, thread := range threads {
		if isStoredID(thread.id) && !family[thread.id] && family[thread.parent] && thread.spawnedBy() == thread.parent {
			family[thread.id] = true
			kept = append(kept, thread)
		}
	}
	slices.SortFunc(kept, func(a, b codexThread) int { return cmp.Compare(a.id, b.id) })
	return kept
}

// codexIndex returns the newest index.
func codexIndex(root *os.Root) (string, error) {
	names, err := namesIn(root, ".")
	if err != nil {
		return "", err
	}
	newest, name := -1, ""
	for _, candidate := range names {
		if number := codexState.FindStringSubmatch(candidate); number != nil {
			if n, err := strconv.Atoi(number[1]); err == nil && n > newest {
				newest, name = n, candidate
			}
		}
	}
	if name == "" {
		return "", fs.ErrNotExist
	}
	return name, nil
}

func checkCodexIndex(ctx context.Context, db *sql.DB, name string) error {
	for table, columns := range map[string]string{
		"threads":            "id rollout_path source title agent_nickname updated_at",
		"thread_spawn_edges": "parent_thread_id child_thread_id status",
	} {
		has, err := hasTable(ctx, db, table, columns)
		if err != nil {
			return err
		}
		if !has {
			return unknownForm(bridge.Codex, name+" has no known "+table)
		}
	}
	return nil
}

// codexThread is one spawned thread in the index.
type codexThread struct {
	id, parent, status, source, nickname, title, rollout string
	updated                                              int64 // Unix epoch seconds
}

func codexThreads(ctx context.Context, db *sql.DB, sessionID string) ([]codexThread, error) {
	rows, err := db.QueryContext(ctx, `
		WITH RECURSIVE family(id, parent, status, depth) AS (
			SELECT child_thread_id, parent_thread_id, status, 1 FROM thread_spawn_edges WHERE parent_thread_id = ?1
			UNION
			SELECT e.child_thread_id, e.parent_thread_id, e.status, f.depth + 1
			FROM thread_spawn_edges e JOIN family f ON e.parent_thread_id = f.id WHERE f.depth < ?2
			LIMIT ?3)
		SELECT f.id, f.parent, f.status, substr(t.source, 1, 4096), substr(ifnull(t.agent_nickname, ''), 1, 256), substr(t.title, 1, 4096),
			substr(t.rollout_path, 1, 4096), t.updated_at
		FROM family f JOIN threads t ON t.id = f.id ORDER BY f.depth`, sessionID, maxChildDepth, maxStoredFamily)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var threads []codexThread
	for rows.Next() {
		var t codexThread
		if err := rows.Scan(&t.id, &t.parent, &t.status, &t.source, &t.nickname, &t.title, &t.rollout, &t.updated); err != nil {
			return nil, err
		}
		threads = append(threads, t)
	}
	return threads, rows.Err()
}

// spawnedBy returns the parent in the child's own record.
func (t codexThread) spawnedBy() string {
	var source struct {
		Subagent struct {
			Spawn struct {
				Parent hooks.Text `json:"parent_thread_id"`
			} `json:"thread_spawn"`
		} `json:"subagent"`
	}
	if json.Unmarshal([]byte(t.source), &source) != nil {
		return ""
	}
	return string(source.Subagent.Spawn.Parent)
}

// child returns the thread as a native child. An open edge only means that the
// child could be used again; its rollout shows whether it works.
func (t codexThread) child(root *os.Root, folder string) session.Child {
	title := strings.Trim(t.nickname+": "+t.title, ": ") // either may be missing
	child := session.Child{ID: t.id, Title: childTitleOf(title), Stored: true, Done: t.status != "open", At: t.updated * 1000}
	name, err := filepath.Rel(folder, t.rollout)
	if err != nil {
		return child
	}
	tail, changed, err := readStored(root, name, true) // root allows no path outside of it
	if err != nil {
		return child
	}
	if at, done, found := codexLastTask(tail); found {
		child.Done, child.At = child.Done || done, at
	} else {
		child.At = changed.UnixMilli() // its task began before this part, and did not end
	}
	return child
}

// codexLastTask finds the last start or end of a turn at the end of a rollout.
func codexLastTask(tail []byte) (at int64, done, found bool) {
	for _, line := range slices.Backward(bytes.Split(tail, []byte("\n"))) {
		if !bytes.Contains(line, []byte(`"task_`)) && !bytes.Contains(line, []byte(`"turn_aborted"`)) {
			continue
		}
		var event struct {
			Timestamp time.Time `json:"timestamp"`
			Type      string    `json:"type"`
			Payload   struct {
				Type string `json:"type"`
			} `json:"payload"`
		}
		if json.Unmarshal(line, &event) != nil || event.Type != "event_msg" {
			continue
		}
		switch event.Payload.Type {
		case "task_started":
			return event.Timestamp.UnixMilli(), false, true
		case "task_complete", "turn_aborted":
			return event.Timestamp.UnixMilli(), true, true
		}
	}
	return 0, false, false
}
