package gitwork

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// undo restores a checkout after git failed to update it, as on a full disk. Then some
// files are partly or fully the next commit's, and the index does not record them. undo
// does not touch other content.
func (l landing) undo(ctx context.Context, from, to string) error {
	raw, err := l.run(ctx, call{dir: l.w.Main, args: []string{"diff-tree", "-r", "--no-renames", "-z", "--raw", from, to}})
	if err != nil {
		return err
	}
	var added, restored []string
	for _, change := range parseRaw(fields(raw.out)) {
		isOurs, err := l.isOfNext(ctx, change, to)
		if err != nil {
			return err
		}
		switch {
		case !isOurs:
		case change.Status == "added":
			added = append(added, change.Path)
		default:
			restored = append(restored, change.Path)
		}
	}
	const atOnce = 200
	for chunk := range slices.Chunk(added, atOnce) { // first, because it frees space
		if _, err := l.tamed(ctx, call{dir: l.w.Main, args: append([]string{"clean", "-f", "-q", "-x", "--"}, chunk...)}); err != nil {
			return err
		}
	}
	if len(restored) == 0 {
		return nil
	}
	back := call{dir: l.w.Main, args: []string{"checkout-index", "-f", "-q", "-z", "--stdin"}, input: strings.Join(restored, "\x00") + "\x00"}
	_, err = l.tamed(ctx, back)
	return err
}

// isOfNext reports whether the content at a path came from the next commit. It is the
// start of its file, or nothing if git removes the old file first.
func (l landing) isOfNext(ctx context.Context, change FileChange, nextTree string) (bool, error) {
	path := filepath.Join(l.w.Main, filepath.FromSlash(change.Path))
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return change.Status != "added", nil
	}
	if err != nil || change.Status == "deleted" {
		return false, err
	}
	var content string
	switch {
	case info.Mode().IsRegular():
		content, err = readUpTo(path, maxOutput)
	case info.Mode()&fs.ModeSymlink != 0:
		content, err = os.Readlink(path)
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	next, err := l.run(ctx, call{dir: l.w.Main, args: []string{"cat-file", "blob", nextTree + ":" + change.Path}})
	if codeOf(err) >= 0 {
		return false, nil // the path of a submodule
	}
	return strings.HasPrefix(next.out, content), err
}

func readUpTo(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit))
	return string(data), err
}

// noRoom matches git's errors about failed writes.
var noRoom = regexp.MustCompile(`(?i)no space left|out of diskspace|unable to write|quota exceeded`)

// brokenOff restores the checkout and returns the error that explains the failure.
func (l landing) brokenOff(ctx context.Context, from, to string, cause error) error {
	if err := l.undo(ctx, from, to); err != nil {
		return bridge.Errorf(bridge.Storage, "%s could not take all of the work, and is left with a part of it (git -C %s status): %w", l.w.Main, bridge.QuotePOSIX(l.w.Main), errors.Join(cause, err))
	}
	if noRoom.MatchString(cause.Error()) {
		return bridge.Errorf(bridge.Storage, "%s could not take the work and is as it was: is its disk full? %w", l.w.Main, cause)
	}
	if codeOf(cause) >= 0 {
		return bridge.Errorf(bridge.Conflict, "%s has files in the way: %w", l.w.Main, cause)
	}
	return cause
}
