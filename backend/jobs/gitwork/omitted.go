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

// Omission is something of a checkout that a snapshot cannot take up, and so no landing
// brings along.
type Omission struct {
	Path string // with slashes; a folder ends with one
	Why  string // ends the sentence that begins with the path
}

// String returns a sentence without its end.
func (o Omission) String() string { return o.Path + " " + o.Why }

// maxOmissions bounds how many are named; another tells how many more there are.
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

// boundedOmissions sorts omissions, drops doubles and what lies in another of them, and cuts the list.
func boundedOmissions(all []Omission) []Omission {
	slices.SortStableFunc(all, func(a, b Omission) int { return strings.Compare(a.Path, b.Path) })
	var kept []Omission
	for _, omission := range all {
		if n := len(kept); n > 0 {
			last := kept[n-1].Path
			if last == omission.Path || strings.TrimSuffix(last, "/") == omission.Path || strings.HasPrefix(omission.Path, strings.TrimSuffix(last, "/")+"/") {
				continue
			}
		}
		kept = append(kept, omission)
	}
	if more := len(kept) - maxOmissions; more > 0 {
		kept = append(kept[:maxOmissions:maxOmissions], Omission{bridge.Counted(more, "more file or folder"), "cannot be kept either"})
	}
	return kept
}

// Sentences returns omissions as they are shown.
func Sentences(omitted []Omission) (sentences []string) {
	for _, omission := range omitted {
		sentences = append(sentences, omission.String())
	}
	return sentences
}

// folderText is how git says that it could not look into a folder; it goes on then.
var folderText = regexp.MustCompile(`(?m)^warning: could not open directory '(.*?)/?': (.*)$`)

// unreadFolders returns the folders that a git could not look into, by what it said.
func unreadFolders(text string) (omitted []Omission) {
	for _, found := range folderText.FindAllStringSubmatch(text, -1) {
		omitted = append(omitted, Omission{found[1] + "/", "cannot be read (" + strings.ToLower(found[2]) + ")"})
	}
	return omitted
}

// fileText is how git says of a file in a folder that it may not enter that it cannot tell
// whether it changed. Git takes up what was committed then.
var fileText = regexp.MustCompile(`(?m)^(.+): (Permission denied|Input/output error|Stale file handle)$`)

// unreadFiles returns the files that a diff-files could not look at, by what it said.
func unreadFiles(text string) (omitted []Omission) {
	for _, found := range fileText.FindAllStringSubmatch(text, -1) {
		omitted = append(omitted, Omission{found[1], "cannot be read (" + strings.ToLower(found[2]) + ")"})
	}
	return omitted
}

// readable returns the names that git can take up, and the others with the reason. A name
// that is gone is one that git can take up: it notes that.
func readable(top string, names []string) (kept []string, omitted []Omission) {
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
		kept = append(kept, name)
	}
	return kept, omitted
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

// special finds in a checkout what git passes over without a word: sockets, pipes, devices
// and what is named .git and is no repository. What git ignores is not told.
func (g *program) special(ctx context.Context, c call, top, within string) ([]Omission, error) {
	var found []Omission
	err := filepath.WalkDir(filepath.Join(top, filepath.FromSlash(within)), func(path string, entry fs.DirEntry, err error) error {
		if err != nil { // git said so, or it has gone meanwhile
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
			return fs.SkipDir // told as a repository, or a submodule
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

// notIgnored returns the omissions that git would not ignore.
func (g *program) notIgnored(ctx context.Context, c call, found []Omission) ([]Omission, error) {
	const here = "./" // so that no name begins a pathspec's magic
	asked := func(o Omission) string { return here + strings.TrimSuffix(o.Path, "/.git") }
	var names []string
	for _, omission := range found {
		names = append(names, asked(omission))
	}
	c.args, c.input = []string{"check-ignore", "-z", "--stdin"}, joined(names)
	c.env = append(slices.Clone(c.env), "GIT_LITERAL_PATHSPECS=0") // check-ignore refuses the other
	done, err := g.run(ctx, c)
	if err != nil && codeOf(err) != 1 { // 1: none is ignored
		return nil, err
	}
	ignored := fields(done.out)
	return slices.DeleteFunc(found, func(o Omission) bool { return slices.Contains(ignored, asked(o)) }), nil
}

// isRepository reports whether a path named .git is a repository's folder, or a file that
// leads to one.
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
		return true // whoever cannot read it keeps it
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

// isGone reports whether a path is not there, also where a file stands in place of one of
// its folders.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
