// Package session holds who is connected: the identity of a session over
// reloads and restarts, its name, its native children, and what a hook call is
// (rows MSG-03, MSG-05, MSG-09). It does no I/O.
package session
