package httpjson

import (
	"errors"
	"net/http"

	"bridge/backend/core/bridge"
)

// statuses is the one table from error codes to HTTP statuses.
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

// Refusal is an answer that only HTTP knows: no code of ours stands for it.
type Refusal struct {
	Status   int
	Sentence string
}

// Error is the sentence.
func (r Refusal) Error() string { return r.Sentence }

// Hidden is what people read of an error that was not written for them.
const Hidden = "something went wrong inside Bridge; its log says what"

// AnswerFor splits an error into status and sentence. Only sentences written
// for people leave: causes stay here.
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
