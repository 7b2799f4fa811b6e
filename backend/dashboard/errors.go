package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	"bridge/backend/bridge"
	"bridge/backend/dashboard/shape"
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

// refusal is an answer that only HTTP knows: no code of ours stands for it.
type refusal struct {
	status   int
	sentence string
}

func (r refusal) Error() string { return r.sentence }

// hidden is what people read of an error that was not written for them.
const hidden = "something went wrong inside Bridge; its log says what"

// answerFor splits an error into status and sentence. Only sentences written
// for people leave: causes stay here.
func answerFor(err error) (int, string) {
	var only refusal
	if errors.As(err, &only) {
		return only.status, only.sentence
	}
	var known *bridge.Error
	if !errors.As(err, &known) {
		return http.StatusInternalServerError, hidden
	}
	status, ok := statuses[known.Code]
	if !ok {
		return http.StatusInternalServerError, hidden
	}
	return status, known.Message
}

// writeError answers with {"error"} and logs what is ours to mend. The log
// names the path only: a query may hold the launch key (AUT-03).
func (d *Dashboard) writeError(w *response, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody reads the answer
	}
	status, sentence := answerFor(err)
	if status >= http.StatusInternalServerError {
		d.log.Error("dashboard request", "method", r.Method, "path", r.URL.Path, "status", status, "err", chain(err))
	}
	if w.begun {
		return
	}
	body, err := encode(shape.Error{Error: sentence})
	if err != nil {
		panic(err) // a string always encodes
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a lost client needs no answer
}

// chain is err with its hidden cause, for the log.
func chain(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) && known.Unwrap() != nil {
		return fmt.Sprintf("%v: %v", err, known.Unwrap())
	}
	return err.Error()
}

// recoverPanic turns a bug into a 500; an answer that has begun is cut off.
func (d *Dashboard) recoverPanic(w *response, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(cause)
	}
	d.log.Error("dashboard bug", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	d.writeError(w, r, refusal{http.StatusInternalServerError, hidden})
}

// writeJSON answers 200 with one of the shapes. It is encoded first, so that an
// encoding error can still become an answer.
func writeJSON[A shape.Answer](w http.ResponseWriter, answer A) error {
	body, err := encode(answer)
	if err != nil {
		return err
	}
	return writeBody(w, body)
}

// encode is the only way from a value to an answer's bytes.
func encode[A shape.Answer](answer A) ([]byte, error) {
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return body, nil
}

func writeBody(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) //nolint:gosec // JSON by its type; a lost client needs no answer
	return nil
}

// maxRequestBytes bounds a request's body: 32,000 characters as the longest
// JSON escapes (12 bytes each), with room for the rest.
const maxRequestBytes = 400 << 10

// drainBytes is how much of a too large body is still taken in: many clients
// write all of a request before they read, and would see a broken connection in
// place of the answer.
const drainBytes = 16 << 20

// readJSON reads the request's body strictly into dst, a pointer to a struct.
func readJSON(w http.ResponseWriter, r *http.Request, dst any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		_, _ = io.CopyN(io.Discard, r.Body, drainBytes) // what is lost here was refused anyway
		return bridge.Errorf(bridge.TooLarge, "the request is larger than %d bytes", maxRequestBytes)
	}
	if err != nil {
		return bridge.WithCause(bridge.Invalid, err, "the request ended before it was whole")
	}
	return bridge.DecodeStrict(body, maxRequestBytes, dst)
}
