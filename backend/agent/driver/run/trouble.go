package run

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"bridge/backend/core/job"
)

// ClassifyError returns the reason of a provider's error that a CLI reports, and its HTTP
// status. Without a status it returns 0 and goes by the usual words of providers.
func ClassifyError(failed Refusal) (job.EndReason, int) {
	code := status(failed)
	return trouble(failed, code), code
}

func trouble(failed Refusal, code int) job.EndReason {
	words := strings.ToLower(failed.Message + " " + string(failed.Data))
	says := func(any ...string) bool {
		for _, phrase := range any {
			if strings.Contains(words, phrase) {
				return true
			}
		}
		return false
	}
	switch {
	case code == 401, code == 403:
		return job.EndAuth
	case code == 402, says("usage limit", "insufficient_quota", "insufficient credit", "out of credits"):
		return job.EndLimit
	case code == 429, code == 529, says("rate limit", "too many requests", "overloaded"):
		return job.EndOverload
	case code >= 500:
		return job.EndProvider
	case says("context_length", "context window", "context length", "prompt is too long"):
		return job.EndContext
	case says("content_filter", "content filter", "safeguards"):
		return job.EndRefusal
	case says("unauthorized", "authentication", "invalid x-api-key", "invalid api key", "incorrect api key"):
		return job.EndAuth
	case says("econnrefused", "fetch failed", "network error", "unable to connect"):
		return job.EndNetwork
	}
	return job.EndFailed
}

// Member is a member of an object, nil where there is none.
func Member(raw json.RawMessage, names ...string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	for _, name := range names {
		if value, has := object[name]; has {
			return value
		}
	}
	return nil
}

var statusPattern = regexp.MustCompile(`\b(?:status(?: code)?|HTTP|error)[ :=]*([45]\d\d)\b`)

// status is the provider's, where the CLI passes it on, in the error's data or in
// words; 0 where it does not.
func status(failed Refusal) int {
	var code int
	if json.Unmarshal(Member(failed.Data, "statusCode", "status", "httpStatus", "httpStatusCode"), &code) == nil && code >= 400 {
		return code
	}
	if found := statusPattern.FindStringSubmatch(failed.Message + " " + string(failed.Data)); found != nil {
		code, _ = strconv.Atoi(found[1]) // three digits
	}
	return code
}
