package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
)

// MaxAnswerChars limits one free-text answer to a model's question.
const MaxAnswerChars = 4_000

// Pick is a part of the owner's answer to a model's question, given by a command. It
// has one of the two fields.
type Pick struct {
	// Option is the number of an offered answer, from 1, or its name. If several may be
	// chosen, it may be numbers with commas.
	Option string `json:"option,omitempty"`
	Words  string `json:"words,omitempty"` // a free-text answer
}

// Picked converts picks to answers to choices: one for each question, in order. If
// there is only one question, all picks are its answers. It fails with Invalid and
// lists the options.
func Picked(choices []bridge.Choice, picks []Pick) ([][]string, error) {
	if len(choices) == 0 {
		return nil, errNoChoice
	}
	answers := make([][]string, len(choices))
	if len(choices) > 1 && len(picks) != len(choices) {
		return nil, bridge.Errorf(bridge.Invalid, "it asks %s, and these are %s: give one for each, in their order: %s",
			bridge.Counted(len(choices), "question"), bridge.Counted(len(picks), "answer"), Offers(choices))
	}
	for i, pick := range picks {
		at := min(i, len(choices)-1)
		chosen, err := pick.answersTo(at+1, choices[at])
		if err != nil {
			return nil, err
		}
		answers[at] = append(answers[at], chosen...)
	}
	return answers, CheckAnswers(choices, answers)
}

var errNoChoice = bridge.Errorf(bridge.Invalid, "nothing can be chosen here: allow or deny it")

// answersTo returns the answers of a pick to the question with that number.
func (p Pick) answersTo(number int, choice bridge.Choice) ([]string, error) {
	if p.Option == "" {
		return []string{p.Words}, nil
	}
	parts := []string{p.Option}
	if choice.Several && !hasLabel(choice, p.Option) {
		parts = strings.Split(p.Option, ",")
	}
	for i, part := range parts {
		label, err := labelOf(number, choice, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		parts[i] = label
	}
	return parts, nil
}

// labelOf returns the label of the answer with that number or name.
func labelOf(number int, choice bridge.Choice, answer string) (string, error) {
	named := hasLabel(choice, answer)
	n, err := strconv.Atoi(answer)
	switch isNumber := err == nil && n >= 1 && n <= len(choice.Options); {
	case isNumber && named && choice.Options[n-1].Label != answer:
		return "", bridge.Errorf(bridge.Invalid, "question %d: %q is the number of one answer and the name of another: give its name by --answer: %s",
			number, answer, offers(choice))
	case isNumber:
		return choice.Options[n-1].Label, nil
	case named:
		return answer, nil
	default:
		return "", noSuchAnswer(number, choice, answer)
	}
}

func hasLabel(choice bridge.Choice, label string) bool {
	return slices.ContainsFunc(choice.Options, func(o bridge.ChoiceOption) bool { return o.Label == label })
}

func noSuchAnswer(number int, choice bridge.Choice, answer string) error {
	return bridge.Errorf(bridge.Invalid, "question %d offers no answer %q: %s", number, answer, offers(choice))
}

// Offers returns one line that lists the options.
func Offers(choices []bridge.Choice) string {
	var all []string
	for _, choice := range choices {
		all = append(all, offers(choice))
	}
	return strings.Join(all, "; ")
}

func offers(choice bridge.Choice) string {
	var parts []string
	for i, option := range choice.Options {
		parts = append(parts, fmt.Sprintf("%d %s", i+1, option.Label))
	}
	what := strings.Join(parts, ", ")
	if choice.Several {
		what = "one or more of " + what
	}
	switch {
	case choice.Words && len(parts) > 0:
		what += ", or words of your own"
	case choice.Words:
		what = "words of your own"
	}
	return choice.Question + " (" + what + ")"
}

// ChoiceText returns the model's questions as lines, with numbered answers.
func ChoiceText(choices []bridge.Choice) []string {
	var lines []string
	add := func(indent, text string) {
		for _, line := range strings.Split(text, "\n") {
			lines = append(lines, indent+line)
		}
	}
	for _, choice := range choices {
		question := choice.Question
		if choice.Header != "" {
			question = choice.Header + ": " + question
		}
		if choice.Several {
			question += " (one or more)"
		}
		add("", question)
		for i, option := range choice.Options {
			label := fmt.Sprintf("%d  %s", i+1, option.Label)
			if option.Description != "" {
				label += ": " + option.Description
			}
			add("  ", label)
			if option.Preview != "" {
				add("       ", option.Preview)
			}
		}
		switch {
		case choice.Words && len(choice.Options) > 0:
			add("  ", "or in your own words")
		case choice.Words:
			add("  ", "in your own words")
		}
	}
	return lines
}

// ApproveText returns the command that answers the questions, with one option for each.
func ApproveText(id string, choices []bridge.Choice) string {
	command := "bridge approve " + id
	for _, choice := range choices {
		if len(choice.Options) == 0 {
			command += " --answer WORDS"
		} else {
			command += " --option N"
		}
	}
	return command
}

// CheckAnswers fails with Invalid if the answers do not fit the questions: a list for
// each, with labels or, if offered, free text.
func CheckAnswers(choices []bridge.Choice, answers [][]string) error {
	if len(choices) == 0 {
		return errNoChoice
	}
	if len(answers) != len(choices) {
		return bridge.Errorf(bridge.Invalid, "answers must hold a list for each of the %s, not %d", bridge.Counted(len(choices), "question"), len(answers))
	}
	for i, choice := range choices {
		if err := checkAnswer(i+1, choice, answers[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkAnswer(number int, choice bridge.Choice, chosen []string) error {
	switch {
	case len(chosen) == 0:
		return bridge.Errorf(bridge.Invalid, "question %d: choose an answer: %s", number, offers(choice))
	case len(chosen) > 1 && !choice.Several:
		return bridge.Errorf(bridge.Invalid, "question %d: choose one answer, not %d: %s", number, len(chosen), offers(choice))
	}
	written := 0
	for i, text := range chosen {
		if slices.Contains(chosen[:i], text) {
			return bridge.Errorf(bridge.Invalid, "question %d: %q is chosen twice", number, text)
		}
		if hasLabel(choice, text) {
			continue
		}
		if written++; !choice.Words || written > 1 {
			return noSuchAnswer(number, choice, text)
		}
		if strings.TrimSpace(text) == "" {
			return bridge.Errorf(bridge.Invalid, "question %d: an answer in words must not be empty", number)
		}
		if err := bridge.CheckText(fmt.Sprintf("the answer to question %d", number), text, MaxAnswerChars); err != nil {
			return err
		}
	}
	return nil
}
