// Package ipc is the local link between the broker and everything else on the
// PC: a Unix socket (a named pipe on Windows) that carries bounded frames of
// JSON. A connection proves the home's token and the same user before anything
// else is read (MSG-02). Requests of one connection run at once; events are
// pushed through a bounded queue, so that a slow client stalls only itself
// (MSG-10).
package ipc
