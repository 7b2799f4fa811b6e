package inventory

import (
	"os"
	"path"
	"regexp"
	"strings"
)

// Of delegated jobs a set holds the registry, the archived ones and what lies right
// in a job's folder: what it was asked, where it is, its journal and its result. It
// holds neither the text of runs, which is their log and their transcript, nor the
// folders below a job's own, which are its agent's temporary files, nor worktrees,
// which are git's.

// runText matches what people read of runs, present and archived.
var runText = regexp.MustCompile(`^(archive/)?runs/[^/]+\.(log|jsonl)$`)

// agentFiles matches what belongs to agents at work.
var agentFiles = regexp.MustCompile(`^(worktrees|(archive/)?jobs/[^/]+/[^/]+)/`)

// IsAgents reports whether name, relative to the home, is that of a file which an
// agent may have made: anything may be in it, under any name.
func IsAgents(name string) bool { return agentFiles.MatchString(name) }

// runnerSecrets match the files that hold the secret by which the processes of a run
// are known, our own and the field's.
var runnerSecrets = regexp.MustCompile(`^(archive/)?jobs/(?:[^/]+/(?:spec|run-\d+|approval-[^/]+)|[^/]+\.spec)\.json$`)

// MaxRunnerBytes bounds what a runner writes of itself, as its reader does.
const MaxRunnerBytes = 4 << 20

// IsRedacted reports whether no copy holds the file as it is: only what PublicPart
// gives of it.
func IsRedacted(name string) bool { return IsApproval(name) || runnerSecrets.MatchString(name) }

// PublicPart returns what a copy may hold of a redacted file of the home dir; ok is
// false where that is nothing.
func PublicPart(dir, name string) (public []byte, ok bool) {
	if IsApproval(name) {
		read := ReadApproval(JoinHome(dir, name))
		return read.Public, read.Answered && read.Public != nil
	}
	_, public = redact(JoinHome(dir, name), MaxRunnerBytes, isTokenOrSecret)
	return public, public != nil
}

// isTokenOrSecret knows the members of a runner's files that stay in the home; how
// many tokens a run has used is none of them.
func isTokenOrSecret(member string) bool {
	return strings.HasSuffix(member, "token") || strings.Contains(member, "secret") || strings.Contains(member, "password")
}

// isUnreadableSecret reports whether the file may hold a secret that cannot be told
// apart: it leaves the home in no copy, so nothing takes its place.
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
