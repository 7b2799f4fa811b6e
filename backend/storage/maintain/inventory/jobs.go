package inventory

import (
	"os"
	"path"
	"regexp"
	"strings"
)

// Of delegated jobs a set holds the registry, the archived ones, and the files directly
// in a job's folder: its request, state, journal and result. It does not hold the text of
// runs, which is their log and transcript. It does not hold the folders below a job's
// own, which are its agent's temporary files. It does not hold worktrees, which belong to
// git.

// runText matches the readable text of runs, present and archived.
var runText = regexp.MustCompile(`^(archive/)?runs/[^/]+\.(log|jsonl)$`)

// agentFiles matches the files of agents at work.
var agentFiles = regexp.MustCompile(`^(worktrees|(archive/)?jobs/[^/]+/[^/]+)/`)

// IsAgents reports whether name, relative to the home, is a file that an agent may have
// created, with any content and name.
func IsAgents(name string) bool { return agentFiles.MatchString(name) }

// runnerSecrets match the files with the secret that identifies the processes of a run,
// of Bridge and of other programs of the layout.
var runnerSecrets = regexp.MustCompile(`^(archive/)?jobs/(?:[^/]+/(?:spec|run-\d+|approval-[^/]+)|[^/]+\.spec)\.json$`)

// MaxRunnerBytes limits a runner's files, like their reader.
const MaxRunnerBytes = 4 << 20

// IsRedacted reports whether no copy holds the file unchanged: only its PublicPart.
func IsRedacted(name string) bool { return IsApproval(name) || runnerSecrets.MatchString(name) }

// PublicPart returns what a copy may hold of a redacted file of the home dir; ok is false
// if that is nothing.
func PublicPart(dir, name string) (public []byte, ok bool) {
	if IsApproval(name) {
		read := ReadApproval(JoinHome(dir, name))
		return read.Public, read.Answered && read.Public != nil
	}
	_, public = redact(JoinHome(dir, name), MaxRunnerBytes, isTokenOrSecret)
	return public, public != nil
}

// isTokenOrSecret reports whether a member of a runner's files stays in the home; a run's
// count of used tokens does not.
func isTokenOrSecret(member string) bool {
	return strings.HasSuffix(member, "token") || strings.Contains(member, "secret") || strings.Contains(member, "password")
}

// isUnreadableSecret reports whether the file may hold a secret that cannot be separated:
// no copy holds it, so nothing replaces it.
func isUnreadableSecret(dir, name string) bool {
	if !runnerSecrets.MatchString(path.Clean(name)) {
		return false
	}
	if _, err := os.Lstat(JoinHome(dir, name)); err != nil {
		return false
	}
	_, ok := PublicPart(dir, name)
	return !ok
}
