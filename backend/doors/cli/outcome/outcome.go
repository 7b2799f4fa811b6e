// Package outcome defines how a command of any program of Bridge ends: its output
// for a result or an error, and its exit code (contract: Commands).
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

// ReportedError is a failure whose details are already printed.
type ReportedError struct{ Code int }

func (*ReportedError) Error() string { return "failed" }

// UsageError is a wrong command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Code returns the exit code of an error. No other code chooses exit codes.
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

// Sentence joins several errors into one text for people.
func Sentence(err error) string {
	return strings.NewReplacer("\n", "; ", context.Canceled.Error(), "it was interrupted").Replace(err.Error())
}

// Report prints an error as one sentence, as the lines of an error that has them, or as
// the JSON document, unless it is already printed.
func Report(stdout, stderr io.Writer, program string, asJSON bool, err error) {
	var several interface{ Lines() []string }
	switch {
	case errors.As(err, new(*ReportedError)):
	case asJSON:
		_ = json.NewEncoder(stdout).Encode(map[string]string{"error": Sentence(err)}) // no other output is left
	case errors.As(err, &several):
		fmt.Fprintf(stderr, "%s: %s\n", program, strings.Join(several.Lines(), "\n"))
	default:
		fmt.Fprintf(stderr, "%s: %s\n", program, Sentence(err))
	}
}
