package gitwork

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"bridge/backend/core/bridge"
)

// Omission is content of a checkout that a snapshot cannot include, so that no landing
// includes it.
type Omission struct {
	Path string // with slashes; a folder ends with one
	Why  string // the rest of the sentence that begins with the path
}

// String returns a sentence without its full stop.
func (o Omission) String() string { return o.Path + " " + o.Why }

// maxOmissions limits how many are named; one more gives the number of the rest.
const maxOmissions = 100

// Reasons of omissions.
const (
	whyRepository = "is another repository, which git does not take up as files"
	whySpecial    = "is no file but a socket, a pipe or a device, which git does not keep"
	whyGit        = "is named .git, so git does not take it up"
)

func whyUnread(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return "cannot be read (" + err.Error() + ")"
}

// boundedOmissions sorts omissions, drops duplicates and nested ones, and cuts the list.
func boundedOmissions(all []Omission) []Omission {
	slices.SortStableFunc(all, func(a, b Omission) int { return strings.Compare(a.Path, b.Path) })
	var bounded []Omission
	for _, omission := range all {
		if n := len(bounded); n > 0 {
			last := bounded[n-1].Path
			if last == omission.Path || strings.TrimSuffix(last, "/") == omission.Path || strings.HasPrefix(omission.Path, strings.TrimSuffix(last, "/")+"/") {
				continue
			}
		}
		bounded = append(bounded, omission)
	}
	if more := len(bounded) - maxOmissions; more > 0 {
		bounded = append(bounded[:maxOmissions:maxOmissions], Omission{bridge.Counted(more, "more file or folder"), "cannot be kept either"})
	}
	return bounded
}

// Sentences returns omissions as display text.
func Sentences(omitted []Omission) (sentences []string) {
	for _, omission := range omitted {
		sentences = append(sentences, omission.String())
	}
	return sentences
}

// folderText matches git's warning about an unreadable folder; git continues after it.
var folderText = regexp.MustCompile(`(?m)^warning: could not open directory '(.*?)/?': (.*)$`)

// unreadFolders returns the unreadable folders in a git's error output.
func unreadFolders(text string) (omitted []Omission) {
	for _, found := range folderText.FindAllStringSubmatch(text, -1) {
		omitted = append(omitted, Omission{found[1] + "/", "cannot be read (" + strings.ToLower(found[2]) + ")"})
	}
	return omitted
}

// fileText matches git's warning that it cannot check a file in an inaccessible folder.
// Git then uses the committed version.
var fileText = regexp.MustCompile(`(?m)^(.+): (Permission denied|Input/output error|Stale file handle)$`)

// unreadFiles returns the files that a diff-files could not read, from its error output.
func unreadFiles(text string) (omitted []Omission) {
	for _, found := range fileText.FindAllStringSubmatch(text, -1) {
		omitted = append(omitted, Omission{found[1], "cannot be read (" + strings.ToLower(found[2]) + ")"})
	}
	return omitted
}

// readable separates the names that git can store from the others, with reasons. Git
// can also store the removal of a missing name.
func readable(top string, names []string) (readableNames []string, omitted []Omission) {
	for _, name := range names {
		path := filepath.Join(top, filepath.FromSlash(name))
		info, err := os.Lstat(path)
		switch {
		case isGone(err):
		case err != nil:
			omitted = append(omitted, Omission{name, whyUnread(err)})
			continue
		case info.Mode().IsRegular():
			if err := canRead(path); err != nil {
				omitted = append(omitted, Omission{name, whyUnread(err)})
				continue
			}
		case info.Mode()&fs.ModeSymlink == 0 && !info.IsDir():
			omitted = append(omitted, Omission{name, whySpecial})
			continue
		}
		readableNames = append(readableNames, name)
	}
	return readableNames, omitted
}

// canRead reads the first byte of a regular file.
func canRead(path string) error {
	file, err := os.Open(path)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// special finds content that git skips silently: sockets, pipes, devices, and a .git
// that is no repository. It omits ignored content.
func (g *program) special(ctx context.Context, c call, top, within string) ([]Omission, error) {
	var found []Omission
	err := filepath.WalkDir(filepath.Join(top, filepath.FromSlash(within)), func(path string, entry fs.DirEntry, err error) error {
		if err != nil { // git reported it, or it is gone
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(top, path)
		if err != nil || len(found) > maxOmissions*10 {
			return cmp.Or(err, fs.SkipAll)
		}
		name := filepath.ToSlash(rel)
		switch mode := entry.Type(); {
		case entry.Name() == ".git":
			if filepath.Dir(path) != top && path != top && !isRepository(path) && !isEmptyFolder(path) {
				found = append(found, Omission{name, whyGit})
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir() && path != top && isRepository(filepath.Join(path, ".git")):
			return fs.SkipDir // reported as a repository or a submodule
		case mode&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice|fs.ModeCharDevice) != 0:
			found = append(found, Omission{name, whySpecial})
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return g.notIgnored(ctx, c, found)
}

// notIgnored returns the omissions that git does not ignore.
func (g *program) notIgnored(ctx context.Context, c call, found []Omission) ([]Omission, error) {
	const here = "./" // so that no name begins with pathspec magic
	pathOf := func(o Omission) string { return here + strings.TrimSuffix(o.Path, "/.git") }
	var names []string
	for _, omission := range found {
		names = append(names, pathOf(omission))
	}
	c.args, c.input = []string{"check-ignore", "-z", "--stdin"}, joined(names)
	c.env = append(slices.Clone(c.env), "GIT_LITERAL_PATHSPECS=0") // check-ignore rejects literal pathspecs
	done, err := g.run(ctx, c)
	if err != nil && codeOf(err) != 1 { // 1: none is ignored
		return nil, err
	}
	ignored := fields(done.out)
	return slices.DeleteFunc(found, func(o Omission) bool { return slices.Contains(ignored, pathOf(o)) }), nil
}

// isRepository reports whether a path named .git is a repository's folder, or a file
// that points to one.
func isRepository(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.IsDir() {
		_, err := os.Lstat(filepath.Join(path, "HEAD"))
		return err == nil
	}
	if !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return true // an unreadable file counts as one
	}
	defer file.Close()
	begin := make([]byte, len("gitdir:"))
	n, _ := file.Read(begin)
	return bytes.Equal(begin[:n], []byte("gitdir:"))
}

func isEmptyFolder(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// isGone reports whether a path is missing, also if a file replaced one of its folders.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
