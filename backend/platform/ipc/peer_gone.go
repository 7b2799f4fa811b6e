//go:build linux || darwin

package ipc

// goneIdentity is the identity of a peer that ended before the check. No process
// has it.
const goneIdentity = "gone"
