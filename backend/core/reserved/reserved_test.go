package reserved

import (
	"path"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

func owner(env map[string]string) Owner {
	return Owner{
		System: "linux", Home: "/home/anna", Bridge: "/home/anna/.bridge", Getenv: func(name string) string { return env[name] },
		Join: path.Join, IsAbs: path.IsAbs,
	}
}

func TestSEC_09_TheFoldersOfAnOwner(t *testing.T) {
	var paths []string
	for _, folder := range owner(map[string]string{"CODEX_HOME": "/srv/codex", "XDG_CONFIG_HOME": "/srv/config", "CLAUDE_CONFIG_DIR": "not/absolute"}).Folders() {
		if folder.What == "" {
			t.Errorf("%s: nobody is told what it holds", folder.Path)
		}
		paths = append(paths, folder.Path)
	}
	for _, want := range []string{
		"/", "/etc", "/usr", "/bin", "/home/anna", "/home/anna/.bridge", "/home/anna/.claude", "/home/anna/.codex", "/srv/codex", "/home/anna/.gemini",
		"/home/anna/.config", "/srv/config", "/home/anna/.config/opencode", "/srv/config/opencode", "/home/anna/.local/share/opencode", "/home/anna/.ssh", "/home/anna/.gnupg",
		"/home/anna/.aws", "/home/anna/.kube", "/home/anna/.docker", "/home/anna/.config/autostart", "/home/anna/.config/systemd", "/home/anna/.local/bin", "/home/anna/bin",
		"/home/anna/.config/fish",
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not reserved", want)
		}
	}
	if slices.Contains(paths, "not/absolute") {
		t.Error("a folder that nobody can find is reserved")
	}
	for _, unknown := range (Owner{System: "windows", Getenv: func(string) string { return "" }, Join: path.Join, IsAbs: path.IsAbs}).Folders() {
		t.Errorf("without a home %s is reserved", unknown.Path)
	}
}

func TestSEC_09_HowFoldersLieToEachOther(t *testing.T) {
	keys := Located{Folder: Folder{Path: "/h/.ssh", What: ofKeys}, Ways: []Trail{{Folders: []int{1, 2, 3}}}}
	gone := Located{Folder: Folder{Path: "/h/.ssh", What: ofKeys}, Ways: []Trail{{Folders: []int{1, 2}, Missing: []string{".ssh"}}}}
	home := Located{Folder: Folder{Path: "/h", What: ofOwner, Itself: true}, Ways: []Trail{{Folders: []int{1, 2}}}}
	own := Located{Folder: Folder{Path: "/h/.bridge", What: ofBridge}, Ways: []Trail{{Folders: []int{1, 2, 4}}}, Except: []Trail{{Folders: []int{1, 2, 4, 5}}}}
	linked := Located{Folder: Folder{Path: "/h/.ssh", What: ofKeys}, Ways: []Trail{{Folders: []int{1, 2, 9}}, {Folders: []int{1, 8, 9}}}}
	for name, tt := range map[string]struct {
		folder Located
		at     Trail
		says   string
	}{
		"itself":                              {keys, Trail{Folders: []int{1, 2, 3}}, "that folder holds keys and passwords"},
		"within":                              {keys, Trail{Folders: []int{1, 2, 3, 7}}, "lies in /h/.ssh"},
		"under another name":                  {keys, Trail{Folders: []int{1, 70, 3, 71}}, "lies in /h/.ssh"},
		"within, and not there":               {keys, Trail{Folders: []int{1, 2, 3}, Missing: []string{"x"}}, "lies in /h/.ssh"},
		"around it":                           {keys, Trail{Folders: []int{1, 2}}, "contains /h/.ssh"},
		"the top":                             {keys, Trail{Folders: []int{1}}, "contains /h/.ssh"},
		"beside it":                           {keys, Trail{Folders: []int{1, 2, 6}}, ""},
		"beside it, and not there":            {keys, Trail{Folders: []int{1, 2}, Missing: []string{"x"}}, ""},
		"what is not there":                   {gone, Trail{Folders: []int{1, 2}, Missing: []string{".ssh"}}, "that folder holds keys"},
		"what is not there, in other letters": {gone, Trail{Folders: []int{1, 2}, Missing: []string{".SSH", "x"}}, "lies in /h/.ssh"},
		"beside what is not there":            {gone, Trail{Folders: []int{1, 2}, Missing: []string{".sshd"}}, ""},
		"around what is not there":            {gone, Trail{Folders: []int{1, 2}}, "contains /h/.ssh"},
		"the home folder":                     {home, Trail{Folders: []int{1, 2}}, "is your home folder"},
		"around the home folder":              {home, Trail{Folders: []int{1}}, "contains /h, your home folder"},
		"in the home folder":                  {home, Trail{Folders: []int{1, 2, 6}}, ""},
		"Bridge's own":                        {own, Trail{Folders: []int{1, 2, 4, 6}}, "lies in /h/.bridge"},
		"all worktrees":                       {own, Trail{Folders: []int{1, 2, 4, 5}}, "lies in /h/.bridge"},
		"one worktree":                        {own, Trail{Folders: []int{1, 2, 4, 5, 6}}, ""},
		"where the link lies":                 {linked, Trail{Folders: []int{1, 2}}, "contains /h/.ssh"},
		"where the link leads":                {linked, Trail{Folders: []int{1, 8}}, "contains /h/.ssh"},
		"an unknown way":                      {Located{Folder: keys.Folder, Ways: []Trail{{}}}, Trail{Folders: []int{1}}, ""},
	} {
		err := Check("/given", tt.at, []Located{tt.folder})
		if tt.says == "" && err != nil || tt.says != "" && (bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "/given")) {
			t.Errorf("%s: %v, want a sentence with %q", name, err, tt.says)
		}
	}
}
