package archtest

import (
	"strings"
	"testing"
)

func TestNumbersInJSONSayTheirUnit(t *testing.T) { report(t, checkUnits(module(t))) }

func TestCheckUnitsFindsAMissingUnit(t *testing.T) {
	for field, found := range map[string]bool{
		"Size int64 `json:\"size\"`":                             true,
		"Size *uint64 `json:\"size\"`":                           true,
		"Size int64 `json:\"size\"` // of the whole, in bytes":   false,
		"Bytes int64 `json:\"size\"`":                            false,
		"Used int64 `json:\"usedTokens\"`":                       false,
		"At bridge.UnixMillis `json:\"at\"`":                     false,
		"Size int64":                                             false,
		"Size int `json:\"size\"`":                               false,
		"// Size is in bytes.\n\tSize int64 `json:\"size\"`":     false,
		"// Size is of the whole.\n\tSize int64 `json:\"size\"`": true,
	} {
		text := "package p\n\ntype T struct {\n\t" + field + "\n}\n"
		if problems := checkUnits([]source{parse(t, "backend/core/mail/m.go", text)}); len(problems) > 0 != found {
			t.Errorf("%s: problems = %q, want some: %v", strings.ReplaceAll(field, "\n", " "), problems, found)
		}
	}
}
