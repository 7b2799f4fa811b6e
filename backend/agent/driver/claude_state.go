package driver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/agent/driver/jobstate"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
)

// claudeState is where claude writes below the sandbox. Each command of a session runs a
// file from shell-snapshots and session-env first, and --resume reads what is in projects:
// so a job has these of its own, and of the owner's only what belongs to its session
// (SEC-05).
type claudeState struct {
	real    string   // the owner's configuration folder
	private string   // that of the job
	session string   // the session's id
	own     string   // the session's own folder, in the owner's
	folders []string // what claude may write
	files   []string // the same, single files
	// readable is what claude reads of the owner's folder, without what was said in other
	// sessions.
	readable []string
}

// ownOfClaude are the folders of a configuration that a job has of its own.
var ownOfClaude = []string{"projects", "sessions", "session-env", "shell-snapshots"}

// wordsOfClaude hold what was said and done in all sessions.
var wordsOfClaude = []string{
	"history.jsonl", "todos", "tasks", "plans", "file-history", "paste-cache", "image-cache", "debug", "logs", "telemetry", "statsig", "backups", "usage-data", "jobs", "teams",
}

// newClaudeState makes the job's configuration folder: links to what the owner's has, and
// of the transcripts those of the session alone.
func newClaudeState(spec job.Spec, session string) (claudeState, error) {
	env := run.Environment(spec)
	home := run.UserHome(env)
	settings := filepath.Join(home, ".claude.json")
	real := filepath.Join(home, ".claude")
	if own := env.Get("CLAUDE_CONFIG_DIR"); own != "" {
		real, settings = own, filepath.Join(own, ".claude.json")
	}
	s := claudeState{real: real, private: filepath.Join(spec.StateFolder, "claude"), session: session}
	if err := jobstate.Mirror(real, s.private, ownOfClaude...); err != nil {
		return s, err
	}
	s.folders = []string{s.private}
	s.readable = append(run.Entries(real, slices.Concat(ownOfClaude, wordsOfClaude)...), settings)
	if _, err := os.Lstat(settings); err == nil {
		if err := jobstate.Link(settings, filepath.Join(s.private, ".claude.json")); err != nil {
			return s, err
		}
	}
	return s, s.linkSession(spec.Folder)
}

// linkSession links what the owner's folder has of the session and of the project's
// memory. The session's own folder, for its subagents and long results, lies in the
// owner's from the start, where the page finds it.
func (s *claudeState) linkSession(folder string) error {
	if !isPlainName(s.session) { // it goes into names of files
		return bridge.Errorf(bridge.Invalid, "%q is no session of claude", s.session)
	}
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved
	}
	project := hooks.ClaudeProject(folder)
	found, err := filepath.Glob(filepath.Join(s.real, "projects", "*", s.session+".jsonl"))
	if err == nil && len(found) > 0 && jobstate.IsPlain(found[0]) {
		project = filepath.Base(filepath.Dir(found[0]))
		if err := jobstate.Link(found[0], s.at("projects", project, s.session+".jsonl")); err != nil {
			return err
		}
		s.files = append(s.files, found[0])
	}
	memory := filepath.Join(s.real, "projects", project, "memory")
	if _, err := os.Stat(memory); err == nil {
		if err := jobstate.Link(memory, s.at("projects", project, "memory")); err != nil {
			return err
		}
		s.readable = append(s.readable, memory)
	}
	s.own = filepath.Join(s.real, "projects", project, s.session)
	s.folders = append(s.folders, s.own)
	return jobstate.Link(s.own, s.at("projects", project, s.session))
}

func (s *claudeState) at(parts ...string) string {
	return filepath.Join(append([]string{s.private}, parts...)...)
}

// publish gives the session's transcript its name in the owner's folder, so that the
// owner can continue it. Where that fails, the transcript stays with the job.
func (s *claudeState) publish() {
	if s.private == "" {
		return
	}
	found, _ := filepath.Glob(s.at("projects", "*", s.session+".jsonl"))
	for _, path := range found {
		_ = jobstate.Publish(s.private, path, filepath.Join(s.real, "projects", filepath.Base(filepath.Dir(path)), s.session+".jsonl"))
	}
	_ = os.Remove(s.own) // if it stayed empty: the system refuses a folder that holds anything
}

// isPlainName reports whether a session's id is letters, digits and hyphens alone.
func isPlainName(id string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	return id != "" && strings.Trim(id, plain) == ""
}
