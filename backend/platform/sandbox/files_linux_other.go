//go:build linux && !amd64

package sandbox

// olderFileCalls are not there on a processor that has no older forms of them.
var olderFileCalls []fileCall
