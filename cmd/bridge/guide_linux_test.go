package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const guideFolder = "../../docs/guide"

// block is a fenced block of a page.
type block struct {
	line   int
	kind   string // the word behind the fence
	text   []string
	reason string // why it is not run, from the comment above it
}

var notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

// blocksOf returns the fenced blocks of a page.
func blocksOf(page string) (blocks []block) {
	var open *block
	reason := ""
	for i, line := range strings.Split(page, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 1, kind: kind, reason: reason}
		case fence:
			blocks, open, reason = append(blocks, *open), nil, ""
		case open != nil:
			open.text = append(open.text, line)
		case notRun.MatchString(line):
			reason = notRun.FindStringSubmatch(line)[1]
		case line != "":
			reason = ""
		}
	}
	return blocks
}

// scriptOf returns the script that runs a page's console blocks, and checks its settings.
// It fails for a block that is neither run nor says why it is not.
func scriptOf(page string) (script string, err error) {
	var b, files strings.Builder
	b.WriteString("mkdir app\n")
	for _, name := range []string{"api", "web"} { // each reads as many messages as the pages send, and stays
		waits := strings.Repeat(" wait_for_message '{}'", 8)
		fmt.Fprintf(&b, "exec session --agent claude --name %s --session %[1]s --cwd $WORK/app --%s &\nawait 0 sh -c 'bridge status | grep -q \"^  %[1]s \"'\n", name, waits)
	}
	b.WriteString("cd app\n")
	for n, block := range blocksOf(page) {
		switch {
		case block.reason != "":
		case block.kind == "json":
			fmt.Fprintf(&b, "cp $WORK/%d.json $BRIDGE_HOME/config.json\nexec bridge config check\nrm $BRIDGE_HOME/config.json\n", n)
			fmt.Fprintf(&files, "-- %d.json --\n%s\n", n, strings.Join(block.text, "\n"))
		case block.kind == "console":
			for i, line := range block.text {
				if command, is := strings.CutPrefix(line, "$ "); is {
					fmt.Fprintf(&b, "exec sh $WORK/%d-%d.sh\n", n, i)
					fmt.Fprintf(&files, "-- %d-%d.sh --\n%s\n", n, i, command)
					continue
				}
				expected := strings.ReplaceAll(regexp.QuoteMeta(strings.ReplaceAll(line, "…", "\x00")), "\x00", ".*")
				fmt.Fprintf(&b, "stdout '(?m)^%s$'\n", strings.ReplaceAll(expected, "'", "''"))
			}
		default:
			return "", fmt.Errorf("line %d: a block is ```console, ```json, or has the line <!-- not run: REASON --> above it", block.line)
		}
	}
	return b.String() + files.String(), nil
}

// The guides' commands do what the guides say.
func TestDOC_04_TheBlocksOfTheGuidesRun(t *testing.T) {
	pages, err := filepath.Glob(guideFolder + "/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	var scripts []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		script, err := scriptOf(string(text))
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		file := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(page), ".md")+".txtar")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, file)
	}
	testscript.Run(t, testscript.Params{Files: scripts, Setup: setUp, Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await}})
}

func TestDOC_04_ABlockThatIsNotRunSaysWhy(t *testing.T) {
	for page, refused := range map[string]bool{
		"```\nbridge send\n```\n":                             true,
		"<!-- not run: it needs a hub -->\n```\nx\n```\n":     false,
		"<!-- not run: one -->\n\n```\nx\n```\n```\ny\n```\n": true,
		"```sh\nx\n```\n":                                     true,
		"```console\n$ bridge status\n…\n```\n":               false,
		"<!-- not run: -->\n```\nx\n```\n":                    true,
	} {
		if _, err := scriptOf(page); (err != nil) != refused {
			t.Errorf("%q: %v", page, err)
		}
	}
	script, err := scriptOf("```console\n$ bridge send api \"x\"\nStored as … for:\n```\n")
	if err != nil || !strings.Contains(script, "stdout '(?m)^Stored as .* for:$'") || !strings.Contains(script, "-- 0-0.sh --\nbridge send api \"x\"\n") {
		t.Errorf("%v:\n%s", err, script)
	}
}
