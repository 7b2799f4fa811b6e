// Package agent knows the programs of the four agent CLIs: their location (Detect),
// the tested versions, the caller of an MCP tool (CallerOf) and
// codex's input queue. It never connects to a broker.
//
// Two packages are below it: setup connects Bridge to the CLIs, and clidata reads
// the CLIs' own stores. Package host handles the input and output of their hooks.
package agent
