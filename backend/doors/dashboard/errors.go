package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
)

// writeError answers with {"error"} and logs internal errors. The log has only the
// path: a query may hold the launch key (AUT-03).
func (d *Dashboard) writeError(w *response, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client is gone
	}
	status, sentence := httpjson.AnswerFor(err)
	if status >= http.StatusInternalServerError {
		d.log.Error("dashboard request", "method", r.Method, "path", r.URL.Path, "status", status, "err", chain(err))
	}
	if w.started {
		return
	}
	body, err := httpjson.Encode(dto.Error{Error: sentence})
	if err != nil {
		panic(err) // a string always encodes
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a lost client needs no answer
}

// chain returns err with its hidden cause, for the log.
func chain(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) && known.Unwrap() != nil {
		return fmt.Sprintf("%v: %v", err, known.Unwrap())
	}
	return err.Error()
}

// recoverPanic turns a panic into a 500; it cuts off an answer that has begun.
func (d *Dashboard) recoverPanic(w *response, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(cause)
	}
	d.log.Error("dashboard bug", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if w.started {
		panic(http.ErrAbortHandler)
	}
	d.writeError(w, r, httpjson.Refusal{Status: http.StatusInternalServerError, Sentence: httpjson.Hidden})
}
