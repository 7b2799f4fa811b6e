// Package conformance runs one attacker inside real delegated jobs, and checks that each
// of its attacks is refused (row SEC-14). The attacker is this test program: it starts
// itself as the agent of a job that the built programs run. The attacks are the rows of one
// table, from which the tables of docs/security.md are generated.
package conformance
