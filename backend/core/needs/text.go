package needs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Text returns the list for people: who, what exactly, where, since when, and the time
// left. line formats a command for typing.
func Text(list []Item, now time.Time, line func(args ...string) string) string {
	if len(list) == 0 {
		return "Nothing needs you.\n"
	}
	var b strings.Builder
	for _, item := range list {
		when := bridge.Ago(item.Since, now)
		if item.Until != nil {
			when += ", " + bridge.Span(time.UnixMilli(*item.Until).Sub(now)) + " left"
		}
		fmt.Fprintf(&b, "%s   (%s)\n%s", item.Headline(), when, item.detailText(line))
		if item.Place != "" {
			fmt.Fprintf(&b, "  %s\n", item.oneLine(item.Place))
		}
		for _, command := range item.Commands() {
			fmt.Fprintf(&b, "  %s\n", command.Text(line))
		}
	}
	return b.String()
}

// detailText returns the detail as text. Each line of an agent's request has a mark, because
// the answering command follows: so an agent's text cannot imitate such a line. Choices
// have numbers.
func (i Item) detailText(line func(args ...string) string) string {
	switch {
	case len(i.choices) > 0:
		return bridge.QuoteLines(strings.Join(job.ChoiceText(i.choices), "\n"), quoteMark)
	case i.Detail == "":
		return ""
	case i.Sort == Approval || i.Sort == Question:
		return bridge.QuoteLines(i.Detail, quoteMark)
	case i.Sort == Storage:
		text := ""
		for _, sentence := range strings.Split(i.Detail, "\n") {
			text += "  " + TypedCommands(bridge.OneLine(sentence), line) + "\n"
		}
		return text
	default:
		return "  " + bridge.OneLine(i.Detail) + "\n"
	}
}

// quotedCommand matches a command of Bridge in a sentence.
var quotedCommand = regexp.MustCompile("`bridge ([^`]+)`")

// TypedCommands returns the sentence with its commands of Bridge as line formats them.
func TypedCommands(sentence string, line func(args ...string) string) string {
	return quotedCommand.ReplaceAllStringFunc(sentence, func(quoted string) string {
		return "`" + line(strings.Fields(quotedCommand.FindStringSubmatch(quoted)[1])...) + "`"
	})
}

// quoteMark begins each line of an agent's request.
const quoteMark = "  | "

// Headline returns the title as one line for a terminal.
func (i Item) Headline() string { return i.oneLine(i.Title) }

// oneLine returns a text of the item as one line. For an approval and a question it
// shows all hidden characters.
func (i Item) oneLine(text string) string {
	if i.Sort == Approval || i.Sort == Question {
		return bridge.VisibleExact(bridge.OneLine(text))
	}
	return bridge.OneLine(text)
}

// Offers returns one line that lists the choices, or "".
func (i Item) Offers() string { return bridge.VisibleExact(bridge.OneLine(job.Offers(i.choices))) }

// Command is a command line that handles an item.
type Command struct {
	Words []string // without the program's name
	Does  string   // its choice or effect, "" if obvious
}

// Commands returns the commands that handle the item, or none. Each is ready to type.
func (i Item) Commands() []Command {
	if i.isElsewhere {
		return nil
	}
	_, id, _ := strings.Cut(i.ID, ":")
	switch i.Sort {
	case Approval:
		return approveCommands(id, i.choices)
	case Question:
		return answerCommands(id, i.options)
	case JobReview:
		name, _, _ := strings.Cut(id, ":")
		return []Command{{[]string{"finish", name, "--squash", "--dry-run"}, "says whether it conflicts; without --dry-run it lands"}}
	case Exchange:
		return i.Exchange.commands()
	case Storage:
		return []Command{{[]string{"doctor"}, ""}}
	case Agent:
		return []Command{{[]string{"install", id}, ""}}
	case Routes:
		kind, _, _ := strings.Cut(id, ":")
		return []Command{{[]string{"prove", kind}, "tries it again, and shows what came"}}
	default:
		return nil
	}
}

func (e *ExchangeItem) commands() []Command {
	resume := Command{[]string{"resume", e.A.Name, e.B.Name}, ""}
	if e.Paused {
		return []Command{resume}
	}
	resume.Does = "lets them go on"
	return []Command{resume, {[]string{"pause", e.A.Name, e.B.Name}, "their messages wait"}}
}

func answerCommands(id string, options []string) []Command {
	if len(options) == 0 {
		return []Command{{[]string{"answer", id, "--text", "-"}, "reads your answer from the terminal"}}
	}
	var commands []Command
	for n, label := range options {
		commands = append(commands, Command{[]string{"answer", id, "--option", strconv.Itoa(n + 1)}, label})
	}
	return commands
}

// approveCommands returns a command for each option of a single question. For several
// questions it returns one, with placeholders for the choices.
func approveCommands(id string, choices []bridge.Choice) []Command {
	command := []string{"approve", id}
	if len(choices) == 1 && len(choices[0].Options) > 0 {
		var commands []Command
		for n, option := range choices[0].Options {
			commands = append(commands, Command{append(slices.Clone(command), "--option", strconv.Itoa(n+1)), option.Label})
		}
		return commands
	}
	if len(choices) == 0 {
		return []Command{{command, ""}}
	}
	return []Command{{Words: strings.Fields(strings.TrimPrefix(job.ApproveText(id, choices), "bridge "))}}
}

// Text returns the line for people; line formats a command for typing.
func (c Command) Text(line func(args ...string) string) string {
	if c.Does == "" {
		return line(c.Words...)
	}
	return line(c.Words...) + "   (" + bridge.VisibleExact(bridge.OneLine(c.Does)) + ")"
}
