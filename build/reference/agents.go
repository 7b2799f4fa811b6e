package main

import (
	"bytes"
	"fmt"

	"bridge/backend/agent"
	"bridge/backend/agent/prove"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
)

const agentsFile = "docs/reference/agents.md"

const agentsHead = "# Agents\n\n" +
	"This page is generated: `go run ./build docs` writes it from the program's tables. It shows the best way that Bridge has into each agent. " +
	"`bridge status` shows the ways that are open for your sessions now.\n\n" +
	"## Sessions in a terminal\n\n" +
	"| agent | mail in a turn | mail wakes an idle session | your words | words to a sub-agent | permission prompts |\n|---|---|---|---|---|---|\n"

const agentsJobs = "\n## Jobs and versions\n\n" +
	"| agent | jobs | tried versions | `bridge prove` | account |\n|---|---|---|---|---|\n"

// agentText holds what no table of the program tells of a kind.
type agentText struct{ name, prompts, jobs string }

var agentTexts = map[bridge.AgentKind]agentText{
	bridge.Claude:      {"Claude Code", "on the page, except those of background agents", "read, ask, edit; words reach a running turn"},
	bridge.Codex:       {"Codex", "on the page, except with `--no-daemon`", "read, ask, edit; words reach a running turn"},
	bridge.OpenCode:    {"opencode", "on the page", "read, ask, edit; words reach a running turn"},
	bridge.Antigravity: {"Antigravity", "in the terminal only", "read, edit; words wait for the next turn"},
}

// agentsPage returns the table of agents. It fails if a kind has no text in agentTexts.
func agentsPage() ([]byte, error) {
	page, jobs := bytes.NewBufferString(agentsHead), bytes.NewBufferString(agentsJobs)
	for _, kind := range bridge.Kinds() {
		text, known := agentTexts[kind]
		if !known {
			return nil, fmt.Errorf("%s has no text: add one to agentTexts in build/reference/agents.go", kind)
		}
		o := delivery.OfferOf(kind)
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", text.name, o.Mail, o.Wake, o.Words, o.Children, text.prompts)
		tried, proven := agent.Tried(kind), "yes"
		if tried == "" {
			tried = "none: tried with a stand-in"
		}
		if prove.CheckKind(kind) != nil {
			proven = "no"
		}
		fmt.Fprintf(jobs, "| %s | %s | %s | %s | your own; Bridge needs none |\n", text.name, text.jobs, tried, proven)
	}
	fmt.Fprint(jobs, "\nAgents with the Agent Client Protocol have jobs only. [Jobs](../guide/jobs.md#agents-with-the-agent-client-protocol) lists those that were tried.\n")
	return append(page.Bytes(), jobs.Bytes()...), nil
}
