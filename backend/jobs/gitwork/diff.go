package gitwork

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
)

// Limits of what a diff shows; its counts are always complete.
const (
	maxPatch  = 512 << 10 // of one file
	maxPatchs = 16 << 20  // of all
)

// FileChange is one file that differs.
type FileChange struct {
	Path    string
	From    string // of a rename or copy
	Status  string // added, modified, deleted, renamed, copied, type
	Added   int    // lines; 0 when Binary
	Removed int
	Binary  bool
	Patch   string // with hunks; "" if Cut
	Cut     bool   // the patch is too long to show
}

// Diff compares the files of tree, from a job's start, with those of the checkout at top,
// committed or not (JOB-18). So it shows only the job's own changes. It fails as Snapshot and
// DiffTrees do.
func (g *Git) Diff(ctx context.Context, top, tree string) ([]FileChange, error) {
	g, err := g.at(ctx, top)
	if err != nil {
		return nil, err
	}
	files, err := g.snapshot(ctx, top, true)
	if err != nil {
		return nil, err
	}
	return g.DiffTrees(ctx, top, tree, files.tree)
}

// DiffTrees compares two trees or commits, within the job's folder if that is recorded. It
// fails with Invalid if an id is malformed, and if git fails, for example for an unknown id.
func (g *Git) DiffTrees(ctx context.Context, top, from, to string) ([]FileChange, error) {
	for _, id := range []string{from, to} {
		if !isID(id) {
			return nil, bridge.Errorf(bridge.Invalid, "%q is no commit or tree", id)
		}
	}
	compare := []string{"diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--diff-algorithm=histogram"}
	var within []string
	if folders := g.places[top]; folders != nil && folders.Inside != "" {
		within = []string{"--", folders.Inside}
	}
	compared := func(args ...string) []string { return slices.Concat(compare, args, []string{from, to}, within) }
	raw, err := g.run(ctx, call{dir: top, args: compared("-z", "--raw")})
	if err != nil {
		return nil, err
	}
	counts, err := g.run(ctx, call{dir: top, args: compared("-z", "--numstat")})
	if err != nil {
		return nil, err
	}
	changes := parseRaw(fields(raw.out))
	count(changes, fields(counts.out))
	patches, err := g.run(ctx, call{dir: top, args: compared("-p"), limit: maxPatchs})
	if err != nil {
		return nil, err
	}
	attach(changes, patches.out, patches.cut)
	return changes, nil
}

// Contains reports whether a worktree's repository has a commit that is an ancestor of head. It
// fails with Invalid if the id is malformed, and if git fails.
func (w Worktree) Contains(ctx context.Context, g *Git, head, commit string) (bool, error) {
	if !isID(commit) {
		return false, bridge.Errorf(bridge.Invalid, "%q is no commit", bridge.OneLine(commit))
	}
	g, err := g.ofMain(ctx, w)
	if err != nil {
		return false, err
	}
	_, err = g.output(ctx, w.Main, "merge-base", "--is-ancestor", commit, head)
	if code := codeOf(err); code == 1 || code == 128 {
		return false, nil
	}
	return err == nil, err
}

func isID(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// statuses maps git's letters to names.
var statuses = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'C': "copied", 'T': "type"}

// rawFields is the number of fields before the paths of a change.
const rawFields = 5

// parseRaw reads two modes, two ids and a letter, then the path, and a second path
// after R and C. It stops at the first invalid change.
func parseRaw(parts []string) []FileChange {
	changes := []FileChange{}
	for i := 0; i+1 < len(parts); i += 2 {
		meta := strings.Fields(parts[i])
		if len(meta) != rawFields {
			break
		}
		letter := meta[rawFields-1][0]
		if strings.IndexByte("RC", letter) >= 0 && i+2 == len(parts) {
			break
		}
		change := FileChange{Path: parts[i+1], Status: statuses[letter]}
		if letter == 'R' || letter == 'C' {
			i++
			change.From, change.Path = change.Path, parts[i+1]
		}
		changes = append(changes, change)
	}
	return changes
}

// count reads `added TAB removed TAB path`, where a rename has separate path fields.
func count(changes []FileChange, parts []string) {
	for i, n := 0, 0; i < len(parts) && n < len(changes); i, n = i+1, n+1 {
		numbers := strings.SplitN(parts[i], "\t", 3)
		if len(numbers) != 3 {
			return
		}
		changes[n].Binary = numbers[0] == "-"
		changes[n].Added, _ = strconv.Atoi(numbers[0])
		changes[n].Removed, _ = strconv.Atoi(numbers[1])
		if numbers[2] == "" { // both paths follow
			i += 2
		}
	}
}

// attach gives each change its part of the patch, which has the same order. A change of
// type has two parts.
func attach(changes []FileChange, patch string, cut bool) {
	const begin = "diff --git "
	parts := strings.SplitAfter(patch, "\n"+begin)
	for i := range parts { // each part but the last ends with the start of the next
		parts[i] = strings.TrimSuffix(parts[i], begin)
		if i > 0 {
			parts[i] = begin + parts[i]
		}
	}
	next := 0
	take := func() (string, bool) {
		if next >= len(parts) || patch == "" {
			return "", false
		}
		next++
		return parts[next-1], !cut || next < len(parts) // the last part of a cut patch is incomplete
	}
	for i := range changes {
		text, complete := take()
		if changes[i].Status == "type" && complete {
			var second string
			second, complete = take()
			text += second
		}
		if changes[i].Cut = !complete || len(text) > maxPatch; !changes[i].Cut {
			changes[i].Patch = strings.ToValidUTF8(text, "\uFFFD")
		}
	}
}
