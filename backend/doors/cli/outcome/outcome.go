// Package outcome is how a command of any of Bridge's programs ends: what it prints of
// what it found or of what failed, and its exit code (contract: Commands).
package outcome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"bridge/backend/core/bridge"
)

// Exit codes.
const (
	Done    = 0
	Failed  = 1
	Usage   = 2
	Refused = 3
	NoOne   = 4
)

// ReportedError is a failure whose details are printed already.
type ReportedError struct{ Code int }

func (*ReportedError) Error() string { return "failed" }

// UsageError is a wrong command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Code is the one place where an error picks its exit code.
func Code(err error) int {
	var done *ReportedError
	var usage *UsageError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &done):
		return done.Code
	case errors.As(err, &usage):
		return Usage
	}
	switch bridge.CodeOf(err) {
	case bridge.Invalid:
		return Usage
	case bridge.Denied:
		return Refused
	case bridge.Unavailable:
		return NoOne
	default:
		return Failed
	}
}

// Sentence writes several errors after one another, for people.
func Sentence(err error) string {
	return strings.NewReplacer("\n", "; ", context.Canceled.Error(), "it was interrupted").Replace(err.Error())
}

// Report prints what failed as one sentence of the program, or as the one JSON document,
// unless that was done already.
func Report(stdout, stderr io.Writer, program string, asJSON bool, err error) {
	switch {
	case errors.As(err, new(*ReportedError)):
	case asJSON:
		_ = json.NewEncoder(stdout).Encode(map[string]string{"error": Sentence(err)}) // nowhere left to say it
	default:
		fmt.Fprintf(stderr, "%s: %s\n", program, Sentence(err))
	}
}
