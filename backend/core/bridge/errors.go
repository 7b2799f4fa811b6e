package bridge

import (
	"errors"
	"fmt"
)

// Code classifies an error at an interface. Each interface maps codes to HTTP statuses
// or exit codes in one table.
type Code string

// The codes. They cross the local socket, so their values are explicit.
const (
	Invalid      Code = "invalid"      // the input is wrong; nothing changed
	TooLarge     Code = "too_large"    // the input is over a limit
	Unauthorized Code = "unauthorized" // no or wrong secret
	Denied       Code = "denied"       // forbidden by policy or consent
	NotFound     Code = "not_found"    // it does not exist
	Ambiguous    Code = "ambiguous"    // several things match
	Conflict     Code = "conflict"     // it contradicts stored data
	Busy         Code = "busy"         // too many requests; try later
	Unavailable  Code = "unavailable"  // no peer available
	Storage      Code = "storage"      // the store failed; nothing was acknowledged
	Unsupported  Code = "unsupported"  // newer or foreign format; left unchanged
	Internal     Code = "internal"     // a bug; details are in the log only
)

// Error is an error for people: one sentence that names the cause.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	cause   error
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, which never leaves this PC.
func (e *Error) Unwrap() error { return e.cause }

// Errorf returns an Error. Every %w verb keeps its operand as a cause. The message
// includes the operand's text, so wrap only text that people may read.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: wrapped.Error(), cause: wrapped}
}

// WithCause returns an Error whose message hides cause.
func WithCause(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, cause: cause}
}

// CodeOf returns the code of the first Error in err's chain, Internal for any other
// error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}
