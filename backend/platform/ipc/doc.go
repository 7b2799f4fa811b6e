// Package ipc is the local link between the broker and the other processes of the
// PC. It is a Unix socket (a named pipe on Windows) with bounded JSON frames. A
// connection must prove the home's token and the same user before anything else is
// read (MSG-02). The requests of one connection run concurrently. Events are pushed
// through a bounded queue, so a slow client delays only itself (MSG-10).
package ipc
