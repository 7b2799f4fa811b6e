//go:build linux && !amd64

package sandbox

// olderFileCalls is empty on a processor without older forms.
var olderFileCalls []fileCall
