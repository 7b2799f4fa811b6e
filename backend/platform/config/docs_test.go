package config

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// reference reads a page of docs/reference and returns the words in its tables' first
// columns that stand in backquotes, by section.
func reference(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", name))
	if err != nil {
		t.Fatal(err)
	}
	found, section := map[string][]string{}, ""
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(text)) {
		if title, is := strings.CutPrefix(line, "## "); is {
			section = strings.TrimSpace(title)
		}
		if first, rest, is := strings.Cut(strings.TrimPrefix(line, "|"), "|"); is && rest != "" {
			for _, word := range quoted.FindAllStringSubmatch(first, -1) {
				found[section] = append(found[section], word[1])
			}
		}
	}
	return found
}

// memberPaths lists the paths of a settings type's JSON members: those of its structs, too.
func memberPaths(of reflect.Type, prefix string) (paths []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" || name == "-":
		case field.Type.Kind() == reflect.Struct && name != "quiet":
			paths = append(paths, memberPaths(field.Type, prefix+name+".")...)
		case name == "agents" && prefix == "":
			paths = append(paths, "agents.KIND.bin", "agents.acp.NAME")
		default:
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

func TestDOC_03_EachSettingIsInTheReference(t *testing.T) {
	documented := reference(t, "config.md")
	var listed []string
	for section, prefix := range map[string]string{"General": "", "Jobs": "jobs.", "Network": "network."} {
		for _, name := range documented[section] {
			listed = append(listed, prefix+name)
		}
	}
	want := memberPaths(reflect.TypeFor[Config](), "")
	slices.Sort(want)
	slices.Sort(listed)
	if !slices.Equal(want, listed) {
		t.Errorf("docs/reference/config.md lists\n%q,\nBridge reads\n%q", listed, want)
	}
}

func TestDOC_03_EachVariableIsInTheReference(t *testing.T) {
	used := map[string]bool{}
	for _, kind := range bridge.Kinds() {
		used["BRIDGE_"+strings.ToUpper(string(kind))+"_BIN"] = true
	}
	variable := regexp.MustCompile(`"(BRIDGE_[A-Z_]+[A-Z])"`)
	root := filepath.Join("..", "..", "..")
	for _, folder := range []string{"backend", "cmd", "app"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range variable.FindAllStringSubmatch(string(text), -1) {
				if !strings.Contains(match[1], "_TEST") {
					used[match[1]] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if names := slices.Sorted(maps.Keys(used)); !slices.Equal(names, Variables()) {
		t.Errorf("the programs read\n%q,\nbut Variables returns\n%q", names, Variables())
	}
	listed := map[string]bool{}
	for _, name := range reference(t, "environment.md")[""] {
		listed[name] = true
	}
	if !maps.Equal(used, listed) {
		t.Errorf("docs/reference/environment.md lists\n%q,\nthe programs read\n%q", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(used)))
	}
}
