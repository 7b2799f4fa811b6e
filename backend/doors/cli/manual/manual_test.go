package manual

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

func TestDOC_05_EachTopicIsShownWithinTheColumns(t *testing.T) {
	for _, topic := range Topics() {
		for _, columns := range []int{60, 80} {
			page, err := Page(os.DirFS("../../../../docs"), topic.Name, columns)
			if err != nil || len(page) < 300 {
				t.Fatalf("%s: %d bytes, %v", topic.Name, len(page), err)
			}
			for line := range strings.Lines(page) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, "    ") || !strings.Contains(strings.TrimSpace(line), " ") || strings.HasPrefix(line, "  ") {
					continue // code and names are not broken
				}
				if utf8.RuneCountInString(line) > columns {
					t.Errorf("%s: wider than %d: %s", topic.Name, columns, line)
				}
			}
			for _, mark := range []string{"](", "**", "|---", "```", "<!--"} {
				if strings.Contains(page, mark) {
					t.Errorf("%s still has %s", topic.Name, mark)
				}
			}
		}
	}
	if _, err := Page(fstest.MapFS{}, "nothing", 80); bridge.CodeOf(err) != bridge.NotFound {
		t.Error(err)
	}
}

func TestDOC_05_APageBecomesPlainText(t *testing.T) {
	const page = "# Title\n\nSome **bold** words with a [link](x.md) that are long.\n\n| a | b | c |\n|---|---|---|\n| `x\\|y` | `1` | what it is |\n\n```\ncode   stays\n```\n- one\n"
	const want = "TITLE\n\nSome bold words with a\nlink that are long.\n\n  x|y\n      b: `1`\n      what it is\n\n    code   stays\n- one\n"
	if got := text(page, 24); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
