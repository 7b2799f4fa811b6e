package sandbox

import llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"

// signalABI is the first Landlock that keeps signals in the sandbox (kernel 6.12).
const signalABI = 6

// ScopesSignals reports whether this kernel's sandbox blocks signals to processes
// outside of it.
func ScopesSignals() bool { return scopesSignals(llsys.LandlockGetABIVersion()) }

// scopesSignals is [ScopesSignals] for the kernel's answer about its Landlock.
func scopesSignals(abi int, err error) bool { return err == nil && abi >= signalABI }
