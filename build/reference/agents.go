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

// agentsPage returns the table of agents, from their traits and from the table of
// deliveries.
func agentsPage() []byte {
	page, jobs := bytes.NewBufferString(agentsHead), bytes.NewBufferString(agentsJobs)
	for _, kind := range bridge.Kinds() {
		traits := bridge.TraitsOf(kind)
		o := delivery.OfferOf(kind)
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", traits.Title, o.Mail, o.Wake, o.Words, o.Children, traits.Prompts.Place)
		tried, proven := agent.Tried(kind), "yes"
		if tried == "" {
			tried = "none: tried with a stand-in"
		}
		if prove.CheckKind(kind) != nil {
			proven = "no"
		}
		fmt.Fprintf(jobs, "| %s | %s | %s | %s | your own; Bridge needs none |\n", traits.Title, traits.Jobs.Offer, tried, proven)
	}
	fmt.Fprint(jobs, "\nAgents with the Agent Client Protocol have jobs only. [Jobs](../guide/jobs.md#agents-with-the-agent-client-protocol) lists those that were tried.\n")
	return append(page.Bytes(), jobs.Bytes()...)
}
