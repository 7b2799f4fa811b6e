package archtest

import (
	"strings"
	"testing"
)

func TestStructsAreMadeInOnePlace(t *testing.T) { report(t, checkLiterals(module(t))) }

func TestCheckLiteralsFindsTheSecondPlace(t *testing.T) {
	const text = "package p\n\nimport \"bridge/backend/storage/maintain\"\n\nvar m = maintain.Maintenance{}\n"
	for _, tt := range []struct {
		path, text string
		found      bool
	}{
		{"backend/doors/cli/c.go", text, true},
		{"backend/doors/cli/c_test.go", text, false},
		{"backend/storage/maintain/m.go", "package maintain\n\nvar m = Maintenance{}\n", false},
		{"backend/doors/cli/c.go", strings.ReplaceAll(text, "storage/maintain", "other/maintain"), false},
		{"backend/doors/cli/c.go", strings.ReplaceAll(text, "Maintenance{}", "Other{}"), false},
	} {
		if found := len(checkLiterals([]source{parse(t, tt.path, tt.text)})) > 0; found != tt.found {
			t.Errorf("found = %v in %s:\n%s", found, tt.path, tt.text)
		}
	}
}
