package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// The tools with which claude's model asks its user something.
const (
	claudeAsksUser  = "AskUserQuestion"
	claudeShowsPlan = "ExitPlanMode"
)

// toolCall returns the key of a tool call. It ignores fields that claude changes later: answers are added to questions, and a plan gets its text.
func toolCall(tool string, input json.RawMessage) string {
	switch tool {
	case claudeShowsPlan:
		return session.CallKey(tool, nil)
	case claudeAsksUser:
		var asked struct {
			Questions []struct {
				Question string `json:"question"`
			} `json:"questions"`
		}
		if json.Unmarshal(input, &asked) != nil {
			return session.CallKey(tool, input)
		}
		only, err := json.Marshal(asked)
		if err != nil {
			return ""
		}
		return session.CallKey(tool, only)
	}
	return session.CallKey(tool, input)
}

// claudeChoices reads the questions of claude's model. It returns nil for an unknown
// member, or for duplicate texts, because the answer refers to questions by text.
func claudeChoices(raw json.RawMessage) []bridge.Choice {
	var asked []struct {
		Question    string                `json:"question"`
		Header      string                `json:"header"`
		Kind        string                `json:"kind"`
		MultiSelect bool                  `json:"multiSelect"`
		Options     []bridge.ChoiceOption `json:"options"`
	}
	if !decodeKnown(raw, &asked) {
		return nil
	}
	choices := make([]bridge.Choice, 0, len(asked))
	texts := map[string]bool{}
	for _, row := range asked {
		isChoice := row.Kind == "" || row.Kind == "choice"
		if !isChoice || texts[row.Question] {
			return nil
		}
		texts[row.Question] = true
		choices = append(choices, bridge.Choice{Question: row.Question, Header: row.Header, Options: row.Options, Several: row.MultiSelect, Words: true})
	}
	return tellable(choices)
}

// claudeAnswers returns the input with the answers to its questions, in the form of claude's
// own dialog: several answers to a question are one text. It returns nil if one is missing.
func claudeAnswers(input json.RawMessage, choices []bridge.Choice, answers [][]string) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if len(choices) == 0 || len(answers) != len(choices) || json.Unmarshal(input, &members) != nil {
		return nil
	}
	given := map[string]string{}
	for i, choice := range choices {
		given[choice.Question] = strings.Join(answers[i], ", ")
	}
	members["answers"] = Encode(given)
	return members
}

// pluginQuestion returns the prompt for the questions of a model whose plugin reports them.
func pluginQuestion(call session.HookCall, raw json.RawMessage) Prompt {
	p := Prompt{Call: call, Kind: AsksQuestion, What: "question"}
	var asked []struct {
		Question string                `json:"question"`
		Header   string                `json:"header"`
		Multiple bool                  `json:"multiple"`
		Custom   *bool                 `json:"custom"`
		Options  []bridge.ChoiceOption `json:"options"`
	}
	if decodeKnown(raw, &asked) {
		for _, row := range asked {
			p.Choices = append(p.Choices, bridge.Choice{
				Question: row.Question, Header: row.Header, Options: row.Options, Several: row.Multiple, Words: row.Custom == nil || *row.Custom,
			})
		}
	}
	if p.Choices = tellable(p.Choices); p.Choices == nil {
		p.Detail = string(raw)
		p.OnlyTold = "the model asks something itself, in a form that Bridge does not know"
		return p
	}
	p.Detail = askedText(p.Choices)
	p.Caution = string(call.Kind) + " takes no reason with a refusal: the question is dismissed, and the turn ends."
	return p
}

// decodeKnown decodes raw and reports whether it has only known members.
func decodeKnown(raw json.RawMessage, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into) == nil
}

// tellable returns the choices, or nil if one could not be answered by its label.
func tellable(choices []bridge.Choice) []bridge.Choice {
	if len(choices) == 0 {
		return nil
	}
	for i, choice := range choices {
		if strings.TrimSpace(choice.Question) == "" || len(choice.Options) == 0 && !choice.Words {
			return nil
		}
		labels := map[string]bool{}
		for _, option := range choice.Options {
			if strings.TrimSpace(option.Label) == "" || labels[option.Label] {
				return nil
			}
			labels[option.Label] = true
		}
		if choice.Options == nil {
			choices[i].Options = []bridge.ChoiceOption{}
		}
	}
	return choices
}

// askedText returns all questions of a model as text.
func askedText(choices []bridge.Choice) string {
	var b strings.Builder
	for _, choice := range choices {
		if choice.Header != "" {
			b.WriteString(choice.Header + ": ")
		}
		b.WriteString(choice.Question)
		if choice.Several {
			b.WriteString(" (several)")
		}
		b.WriteString("\n")
		for _, option := range choice.Options {
			fmt.Fprintf(&b, "  - %s", option.Label)
			if option.Description != "" {
				b.WriteString(": " + option.Description)
			}
			b.WriteString("\n")
			if option.Preview != "" {
				b.WriteString("    " + strings.ReplaceAll(option.Preview, "\n", "\n    ") + "\n")
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
