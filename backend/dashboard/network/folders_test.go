package network

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/bridge"
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
		roots, err := Folders{}.check(nil, []string{root})
		if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want a sentence with %q", root, roots, err, says)
		}
	}
	for _, root := range []string{src, src + "/", src + "//"} {
		if roots, err := (Folders{}).check(nil, []string{root}); err != nil || !slices.Equal(roots, []string{src}) {
			t.Errorf("%q: %v, %v", root, roots, err)
		}
	}
	if roots, err := (Folders{}).check([]string{link, "/no/such"}, []string{"/no/such", link, src}); err != nil || !slices.Equal(roots, []string{"/no/such", link, src}) {
		t.Errorf("what was allowed before: %v, %v", roots, err)
	}
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
	for _, tt := range []struct {
		folders    Folders
		root, says string
	}{
		{Folders{user, home}, src, ""},
		{Folders{user, home}, user, "your whole home folder"},
		{Folders{user, home}, filepath.Dir(user), "your whole home folder"},
		{Folders{user, elsewhere}, filepath.Dir(elsewhere), "holds Bridge's own folder"},
		{Folders{user, home}, home, "holds Bridge's own folder"},
		{Folders{user, home}, mkdir(t, home, "runs"), "inside Bridge's own folder"},
		{Folders{user, home}, link, "is really " + src},
		{Folders{user, home}, filepath.Join(dir, "gone"), "is not there now"},
		{Folders{user, home}, "/", "everything on this PC"},
		{Folders{user, home}, "/etc", "belongs to the system"},
		{Folders{user, home}, "/usr/share", "belongs to the system"},
		{Folders{"/nowhere/anna", "/nowhere/bridge"}, "/tmp", "very broad"},
		{Folders{"", home}, src, ""},
	} {
		got := tt.folders.warning(tt.root)
		if tt.says == "" && got != "" || !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q, want %q", tt.root, got, tt.says)
		}
	}
}
