//go:build linux || darwin

package ipc

// goneIdentity is the identity of a peer that had ended before it could be looked at. No
// process has it.
const goneIdentity = "gone"
