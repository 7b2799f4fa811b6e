// Package httpjson strictly parses the dashboard's requests and writes its answers,
// which are dto shapes only. The dashboard and its subpackages share it. Package
// guard has admitted the requests before.
package httpjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
)

// WriteJSON answers 200 with a shape. It encodes the shape first, so that an
// encoding error still becomes an answer.
func WriteJSON[A dto.Answer](w http.ResponseWriter, answer A) error {
	body, err := Encode(answer)
	if err != nil {
		return err
	}
	return WriteBody(w, body)
}

// Encode is the only way to encode an answer. It fails if the value cannot be encoded.
func Encode[A dto.Answer](answer A) ([]byte, error) {
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return body, nil
}

// Refuse answers with a refusal that holds more than a sentence.
func Refuse[A dto.Answer](w http.ResponseWriter, status int, answer A) error {
	body, err := Encode(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a lost client needs no answer
	return nil
}

// WriteBody answers 200 with an encoded answer.
func WriteBody(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a lost client needs no answer
	return nil
}

// MaxRequestBytes bounds a request's body: 32,000 characters as the longest JSON
// escapes (12 bytes each), plus the rest.
const MaxRequestBytes = 400 << 10

// DrainBytes is how much of a too large body is still read. Many clients write the
// whole request before they read, and would see a broken connection instead of the
// answer.
const DrainBytes = 16 << 20

// ReadJSON strictly decodes the request's body into dst, a pointer to a struct.
func ReadJSON(w http.ResponseWriter, r *http.Request, dst any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		_, _ = io.CopyN(io.Discard, r.Body, DrainBytes) // these bytes were refused anyway
		return bridge.Errorf(bridge.TooLarge, "the request is larger than %d bytes", MaxRequestBytes)
	}
	if err != nil {
		return bridge.WithCause(bridge.Invalid, err, "the request ended before it was whole")
	}
	return bridge.DecodeStrict(body, MaxRequestBytes, dst)
}

// CheckOwnerBody fails if the owner's text is empty or too long.
func CheckOwnerBody(body string) error {
	if strings.TrimSpace(body) == "" {
		return bridge.Errorf(bridge.Invalid, "the body must not be empty")
	}
	return bridge.CheckText("the body", body, bridge.MaxOwnerBodyChars)
}
