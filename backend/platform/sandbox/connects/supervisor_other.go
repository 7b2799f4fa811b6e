//go:build !linux

package connects

import (
	"os"

	"bridge/backend/platform/sandbox"
)

// Supervisor does not exist on this system.
type Supervisor struct{}

// New fails with [sandbox.ErrUnavailable].
func New(Policy, []string) (*Supervisor, error) { return nil, sandbox.ErrUnavailable }

// File returns nil.
func (s *Supervisor) File() *os.File { return nil }

// Start does nothing.
func (s *Supervisor) Start(int) {}

// Refused returns nil.
func (s *Supervisor) Refused() <-chan string { return nil }

// Unsupervised returns nil.
func (s *Supervisor) Unsupervised() <-chan struct{} { return nil }

// Done returns nil.
func (s *Supervisor) Done() <-chan struct{} { return nil }

// Close does nothing.
func (s *Supervisor) Close() {}
