//go:build !linux

package sandbox

// ScopesSignals reports false: this system has no sandbox for jobs.
func ScopesSignals() bool { return false }
