// Package simulation runs two to five PCs within one process and one testing/synctest
// bubble, from one seed (row PRF-03). The seed chooses what sessions do and what goes
// wrong. The same seed replays the same steps and the same faults.
//
// Real are the packages sharing and store with SQLite, and what the broker stores and
// decides for them. In one of four worlds the PCs do jobs for each other: real are the
// packages remotejobs and jobs with their files, too. Simulated are:
//
//   - time: the bubble's clock, and for each PC how far its wall clock is off. A clock
//     that is set leaves the monotonic part of a time alone, as on a real machine.
//   - the network: a bus that keeps what package peering promises of a transport. It
//     delays frames, holds them and releases them at once, repeats them, and breaks links.
//   - the disk: SQLite writes through a file layer that knows what was synced. A crash
//     loses what was not, or any part of it. Names and lengths of files are not lost.
//   - the owner's settings, which may take long to read, and sessions.
//   - runners of jobs: each claims its run, works for a while, and writes an answer. It
//     ends with its PC. Files of jobs are on the real disk, which loses nothing.
//
// Package soak kills real programs and package faults fails real system calls: they show
// that the programs hold, some hundred times a night. A simulated hour takes a fraction of
// a second here, so that ten thousand combinations of faults are tried, and each failure
// can be had again. TLS and sockets of package link and the engine of a hub are not
// simulated: packages peering, link and hub test them over loopback.
package simulation
