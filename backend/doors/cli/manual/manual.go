// Package manual shows pages of the documentation on a terminal: `bridge help TOPIC`.
package manual

import (
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
)

// Topic is a page that `bridge help` shows.
type Topic struct {
	Name  string
	Short string
	page  string // its file, below docs
}

// Topics returns all topics, as the help lists them.
func Topics() []Topic {
	return []Topic{
		{"config", "the settings in config.json", "reference/config.md"},
		{"environment", "the variables that Bridge reads", "reference/environment.md"},
		{"exit-codes", "what a command's exit code means", "reference/exit-codes.md"},
		{"files", "what is in the home", "reference/files.md"},
		{"jobs", "how sessions give jobs to agents", "guide/jobs.md"},
		{"storage", "check, back up, restore", "storage.md"},
		{"targets", "what TO may be in bridge send", "reference/targets.md"},
		{"teams", "a hub for many PCs", "teams/hub.md"},
	}
}

// List returns the topics as text for the end of the help.
func List() string {
	var b strings.Builder
	b.WriteString("\nHelp topics:\n")
	for _, topic := range Topics() {
		b.WriteString("  " + topic.Name + strings.Repeat(" ", 13-len(topic.Name)) + topic.Short + "\n")
	}
	b.WriteString("\nUse \"bridge help TOPIC\" to read one.\n")
	return b.String()
}

// Help returns the topics for `bridge help`, printed to out.
func Help(pages fs.FS, out io.Writer) usage.Topics {
	topics := usage.Topics{List: List()}
	for _, topic := range Topics() {
		topics.Names = append(topics.Names, topic.Name)
	}
	topics.Show = func(cmd *cobra.Command, name string) error {
		page, err := Page(pages, name, terminal.Columns(out))
		if err != nil {
			return err
		}
		if known, _, err := cmd.Root().Find([]string{name}); err == nil && known != cmd.Root() {
			page += "\nThe command of this name: `" + known.CommandPath() + " --help`\n"
		}
		_, err = fmt.Fprint(out, page)
		return err
	}
	return topics
}

// Page returns the page of a topic as text for a terminal of so many columns. It fails
// with NotFound if there is no such topic.
func Page(pages fs.FS, name string, columns int) (string, error) {
	for _, topic := range Topics() {
		if topic.Name != name {
			continue
		}
		markdown, err := fs.ReadFile(pages, topic.page)
		if err != nil {
			return "", bridge.WithCause(bridge.Internal, err, "this program has no page about "+name)
		}
		return text(string(markdown), columns), nil
	}
	return "", bridge.Errorf(bridge.NotFound, "there is no help topic %q", name)
}

var (
	link    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	bold    = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	escaped = regexp.MustCompile(`\\([|*_])`)
)

// plain returns a line of Markdown without links and bold words. Commands keep their
// backquotes.
func plain(line string) string {
	return escaped.ReplaceAllString(bold.ReplaceAllString(link.ReplaceAllString(line, "$1"), "$1"), "$1")
}

// text returns a page of Markdown as plain text in lines of at most so many columns.
// Examples and code stay as they are.
func text(markdown string, columns int) string {
	var b strings.Builder
	code := false
	var table [][]string
	for line := range strings.Lines(markdown + "\n") {
		line = strings.TrimRight(line, "\r\n")
		if row, is := cells(line); is && !code {
			table = append(table, row)
			continue
		}
		writeTable(&b, table, columns)
		table = nil
		switch {
		case strings.HasPrefix(line, "<!--") && !code: // for those who write the page
		case strings.HasPrefix(line, "```"):
			code = !code
		case code:
			b.WriteString("    " + line + "\n")
		case strings.HasPrefix(line, "#"):
			b.WriteString(strings.ToUpper(plain(strings.TrimLeft(line, "# "))) + "\n")
		case strings.HasPrefix(line, "- "):
			b.WriteString(wrap(plain(line), columns, "  "))
		case line == "":
			b.WriteString("\n")
		default:
			b.WriteString(wrap(plain(line), columns, ""))
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// cells returns the cells of a row of a table, or no cells for the line below its head.
func cells(line string) (row []string, is bool) {
	if !strings.HasPrefix(line, "|") {
		return nil, false
	}
	if strings.Trim(line, "|-: ") == "" {
		return nil, true
	}
	for cell := range strings.SplitSeq(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|") {
		row = append(row, strings.TrimSpace(plain(strings.ReplaceAll(cell, "\x00", "|"))))
	}
	return row, true
}

// writeTable writes each row of a table: its first cell, and the others below it.
func writeTable(b *strings.Builder, table [][]string, columns int) {
	for i, row := range table {
		if i == 0 || len(row) == 0 { // the head, and the line below it
			continue
		}
		b.WriteString("  " + strings.ReplaceAll(row[0], "`", "") + "\n")
		for at, cell := range row[1:] {
			if cell == "" {
				continue
			}
			if head := table[0]; len(row) > 2 && at+1 < len(row)-1 && at+1 < len(head) {
				cell = head[at+1] + ": " + cell
			}
			b.WriteString(wrap("      "+cell, columns, "      "))
		}
	}
}

// wrap breaks a line between words. The lines after the first begin with indent.
func wrap(line string, columns int, indent string) string {
	var b strings.Builder
	lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
	b.WriteString(lead)
	used, first := len(lead), true
	for token := range strings.FieldsSeq(line) {
		size := utf8.RuneCountInString(token)
		switch {
		case first:
		case used+1+size > columns:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(token)
		used += size
		first = false
	}
	return b.String() + "\n"
}
