package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

var update = flag.Bool("update", false, "write the tables of docs/security.md anew")

// The generated part of the page stands between these.
const (
	tablesBegin = "<!-- attacks: begin. Generated: go test ./backend/testing/conformance -run Security -update -->\n"
	tablesEnd   = "<!-- attacks: end -->"
)

// tables returns the generated part of the page.
func tables() string {
	var text strings.Builder
	for _, class := range classes {
		fmt.Fprintf(&text, "\n### %s\n\n| attack | Claude Code | Codex | opencode | ACP agents | needs | success is proved when |\n|---|---|---|---|---|---|---|\n", class)
		for _, a := range attacks {
			if a.class != class {
				continue
			}
			cells := []string{a.name}
			for _, kind := range kinds {
				cells = append(cells, a.cell(kind))
			}
			fmt.Fprintf(&text, "| %s | %s | %s |\n", strings.Join(cells, " | "), a.needs(), a.proof.words)
		}
	}
	return text.String() + "\n"
}

// cell lists the access levels for which the attack is refused in a job of that agent.
func (a attack) cell(kind bridge.AgentKind) string {
	where := local
	if a.places != nil {
		where = a.places[0]
	}
	var levels []string
	for _, access := range every {
		if a.tries(setting{kind, access, where, signalScope}) {
			levels = append(levels, string(access))
		}
	}
	all := strings.Join(levels, ", ")
	switch {
	case where == paired && kind == job.ACP:
		return "no such jobs"
	case a.layer == inSandbox && kind == bridge.Codex:
		return "own"
	case a.kinds != nil && !slices.Contains(a.kinds, kind):
		return "not tried"
	case len(levels) == 0:
		return "–"
	case a.open != "":
		return "gap: " + all
	case where == paired:
		return all + ", of a paired PC"
	}
	return all
}

// needs says which system the layer needs.
func (a attack) needs() string {
	switch {
	case a.class == display:
		return "any system"
	case a.landlock >= signalScope:
		return "Linux 6.12"
	case a.layer == inSandbox || a.class == startProgram:
		return "Linux 6.2"
	}
	return "Linux"
}

// TestSEC_14_TheSecurityPageHasEveryAttack wants the tables of docs/security.md to say what
// the suite tries. With -update it writes them.
func TestSEC_14_TheSecurityPageHasEveryAttack(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "security.md")
	page, err := os.ReadFile(path)
	must(t, err)
	before, rest, begins := strings.Cut(string(page), tablesBegin)
	written, after, ends := strings.Cut(rest, tablesEnd)
	if !begins || !ends {
		t.Fatalf("%s has no part that is generated", path)
	}
	want := tables()
	if *update {
		must(t, os.WriteFile(path, []byte(before+tablesBegin+want+tablesEnd+after), 0o600))
		return
	}
	if written != want {
		t.Errorf("the tables of docs/security.md differ from the suite: run `go test ./backend/testing/conformance -run Security -update`")
	}
}

// TestSEC_14_SecurityPagesAreShort bounds what people read: sentences of 20 words, and the
// policy of 250.
func TestSEC_14_SecurityPagesAreShort(t *testing.T) {
	for name, most := range map[string]int{"SECURITY.md": 250, "docs/security.md": 2000} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		must(t, err)
		before, _, _ := strings.Cut(string(text), tablesBegin)
		if n := len(strings.Fields(before)); n > most {
			t.Errorf("%s has %d words, at most %d are read", name, n, most)
		}
		ends := func(r rune) bool { return strings.ContainsRune(".:;|\n", r) }
		for _, sentence := range strings.FieldsFunc(strings.ReplaceAll(before, ".md", ""), ends) {
			if n := len(strings.Fields(sentence)); n > 20 {
				t.Errorf("%s: a sentence has %d words: %s", name, n, sentence)
			}
		}
	}
}

// TestSEC_14_EachAttackIsTried wants each row to have a name of its own, a proof, and a
// cell in which it is tried.
func TestSEC_14_EachAttackIsTried(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks {
		if seen[a.slug()] || a.proof.holds == nil || !slices.Contains(classes, a.class) || a.run == nil && a.flow != displayFlow {
			t.Errorf("%q is there twice or has no proof, class or run", a.name)
		}
		seen[a.slug()] = true
		tried := false
		for _, kind := range kinds {
			for _, access := range every {
				for _, where := range []place{local, paired} {
					tried = tried || a.tries(setting{kind, access, where, signalScope})
				}
			}
		}
		if !tried {
			t.Errorf("%q is tried nowhere", a.name)
		}
	}
}
