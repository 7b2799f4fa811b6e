package httpjson

import (
	"errors"
	"net/http"

	"bridge/backend/core/bridge"
)

// statuses maps every error code to its HTTP status.
var statuses = map[bridge.Code]int{
	bridge.Invalid:      http.StatusBadRequest,
	bridge.TooLarge:     http.StatusRequestEntityTooLarge,
	bridge.Unauthorized: http.StatusForbidden,
	bridge.Denied:       http.StatusForbidden,
	bridge.NotFound:     http.StatusNotFound,
	bridge.Ambiguous:    http.StatusConflict,
	bridge.Conflict:     http.StatusConflict,
	bridge.Busy:         http.StatusTooManyRequests,
	bridge.Unavailable:  http.StatusServiceUnavailable,
	bridge.Storage:      http.StatusServiceUnavailable,
	bridge.Unsupported:  http.StatusNotImplemented,
	bridge.Internal:     http.StatusInternalServerError,
}

// Refusal is an error with an HTTP status that no error code maps to.
type Refusal struct {
	Status   int
	Sentence string
}

// Error returns the sentence.
func (r Refusal) Error() string { return r.Sentence }

// Hidden replaces an error that was not written for people.
const Hidden = "something went wrong inside Bridge; its log says what"

// AnswerFor returns an error's status and sentence. It returns only sentences
// written for people; causes stay inside.
func AnswerFor(err error) (int, string) {
	var only Refusal
	if errors.As(err, &only) {
		return only.Status, only.Sentence
	}
	var known *bridge.Error
	if !errors.As(err, &known) {
		return http.StatusInternalServerError, Hidden
	}
	status, ok := statuses[known.Code]
	if !ok {
		return http.StatusInternalServerError, Hidden
	}
	return status, known.Message
}
