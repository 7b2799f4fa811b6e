package bridge

import (
	"errors"
	"fmt"
)

// Code classifies an error at a boundary. Doors map codes to HTTP statuses and
// exit codes in one table each.
type Code string

// The codes. They cross the local socket, so they are written out.
const (
	Invalid      Code = "invalid"      // the input is wrong; nothing changed
	TooLarge     Code = "too_large"    // the input is over a limit
	Unauthorized Code = "unauthorized" // no or wrong secret
	Denied       Code = "denied"       // policy or consent says no
	NotFound     Code = "not_found"    // no such thing
	Ambiguous    Code = "ambiguous"    // several things fit
	Conflict     Code = "conflict"     // it contradicts what is stored
	Busy         Code = "busy"         // too many requests; try later
	Unavailable  Code = "unavailable"  // nobody there to ask
	Storage      Code = "storage"      // the store refused; nothing was acknowledged
	Unsupported  Code = "unsupported"  // newer or foreign format; left unchanged
	Internal     Code = "internal"     // a bug; details are in the log only
)

// Error is an error for people: one sentence that names what was wrong.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	cause   error
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, which never leaves the machine.
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an Error. Every %w verb keeps its operand as a cause; the message
// includes the operand's text, so wrap only what people may read.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: wrapped.Error(), cause: wrapped}
}

// WithCause makes an Error whose message hides cause.
func WithCause(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, cause: cause}
}

// CodeOf returns the code of the first Error in err's chain, Internal for any
// other error, and "" for nil.
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
