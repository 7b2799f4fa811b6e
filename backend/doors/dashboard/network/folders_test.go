package network

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// canonicalDir is a folder of a test without links in its path.
func canonicalDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var noneReserved = Folders{Reserved: func(string) error { return nil }}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRMT_06_BadFoldersAreRefusedInASentence(t *testing.T) {
	dir := canonicalDir(t)
	src := mkdir(t, dir, "src")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(src, link); err != nil {
		t.Skip("no links on this system:", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	top := filepath.VolumeName(dir) + string(filepath.Separator)
	for root, says := range map[string]string{
		"":                                "a folder is missing",
		" ":                               "a folder is missing",
		"src":                             "is not an absolute folder",
		"./src":                           "is not an absolute folder",
		"~/src":                           "is not an absolute folder",
		filepath.Join(dir, "missing"):     "there is no folder",
		file:                              "is no folder",
		filepath.Join(file, "below"):      "",
		top:                               "is everything on this PC",
		dir + "/src/..":                   "is really " + dir,
		link:                              "is really " + src,
		filepath.Join(link, "..", "link"): "is really " + src,
		dir + "//src":                     "is really " + src,
	} {
		roots, err := noneReserved.check(nil, []string{root})
		if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want a sentence with %q", root, roots, err, says)
		}
	}
	for _, root := range []string{src, src + "/", src + "//"} {
		if roots, err := noneReserved.check(nil, []string{root}); err != nil || !slices.Equal(roots, []string{src}) {
			t.Errorf("%q: %v, %v", root, roots, err)
		}
	}
	if roots, err := noneReserved.check([]string{link, "/no/such"}, []string{"/no/such", link, src}); err != nil || !slices.Equal(roots, []string{"/no/such", link, src}) {
		t.Errorf("what was allowed before: %v, %v", roots, err)
	}
}

// reservedBy are the folders of an owner with that home folder and that home of Bridge's.
func reservedBy(t *testing.T, user, home string) Folders {
	t.Helper()
	getenv := func(name string) string {
		return map[string]string{"HOME": user, "USERPROFILE": user}[name]
	}
	own, err := config.ResolveHome(home, getenv)
	if err != nil {
		t.Fatal(err)
	}
	return Folders{Reserved: config.ReservedFolders(own, getenv).Check}
}

func TestRMT_06_BroadFoldersAreWarnedOf(t *testing.T) {
	dir := canonicalDir(t)
	user := mkdir(t, dir, "home", "anna")
	home := mkdir(t, user, ".bridge")
	elsewhere := mkdir(t, dir, "srv", "bridge", "home")
	src := mkdir(t, user, "src")
	link := filepath.Join(user, "link")
	if err := os.Symlink(src, link); err != nil {
		t.Skip("no links on this system:", err)
	}
	usual, other := reservedBy(t, user, home), reservedBy(t, user, elsewhere)
	for _, tt := range []struct {
		folders    Folders
		root, says string
	}{
		{usual, src, ""},
		{usual, user, "allows nothing: no job may write in " + user + ": that folder is your home folder"},
		{usual, filepath.Dir(user), "which holds"},
		{other, filepath.Dir(elsewhere), "which holds what Bridge keeps"},
		{usual, home, "that folder holds what Bridge keeps"},
		{usual, mkdir(t, home, "runs"), "lies in " + home},
		{usual, mkdir(t, user, ".ssh"), "keys and passwords"},
		{usual, link, "is really " + src},
		{usual, filepath.Join(dir, "gone"), "is not there now"},
		{usual, "/", "belongs to the system"},
		{usual, "/etc", "belongs to the system"},
		{usual, "/usr/share", "belongs to the system"},
		{reservedBy(t, "/nowhere/anna", "/nowhere/bridge"), "/tmp", "very broad"},
	} {
		got := tt.folders.warning(tt.root)
		if tt.says == "" && got != "" || !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q, want %q", tt.root, got, tt.says)
		}
	}
}

func TestSEC_09_AReservedFolderIsNotAllowedToOtherPCs(t *testing.T) {
	dir := canonicalDir(t)
	user := mkdir(t, dir, "home", "anna")
	folders := reservedBy(t, user, mkdir(t, user, ".bridge"))
	for _, root := range []string{user, filepath.Dir(user), mkdir(t, user, ".ssh"), mkdir(t, user, ".bridge", "jobs"), mkdir(t, user, ".config"), "/etc"} {
		if roots, err := folders.check(nil, []string{root}); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), root) || !strings.Contains(err.Error(), "no job may write") {
			t.Errorf("%s: %v, %v", root, roots, err)
		}
	}
	if roots, err := folders.check([]string{user}, []string{user, mkdir(t, user, "src")}); err != nil || len(roots) != 2 {
		t.Errorf("what was there before stays, and allows nothing: %v, %v", roots, err)
	}
}
