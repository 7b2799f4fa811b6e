package archtest

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// module loads the whole module but for what is not written here.
func module(t *testing.T) []source {
	t.Helper()
	sources, err := load("../../..", "app", "backend", "build", "cmd", "frontend")
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 20 {
		t.Fatalf("only %d files found: the walk is broken", len(sources))
	}
	return sources
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestImportsOnlyGoDown(t *testing.T) { report(t, checkLayers(module(t))) }

func TestEveryPackageStandsInAWing(t *testing.T) {
	report(t, checkWings(module(t)))
	if n := len(wings) + 1; n > 10 {
		t.Errorf("backend has %d wings, at most 10 are overlooked at once", n)
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) { report(t, checkComments(module(t))) }

func parse(t *testing.T, path, text string) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{path: path, file: file, set: set}
}

func TestCheckLayersFindsWhatIsWrong(t *testing.T) {
	tests := []struct{ name, path, imported, want string }{
		{name: "down", path: "backend/broker/b.go", imported: "bridge/backend/storage/store"},
		{name: "up", path: "backend/storage/store/s.go", imported: "bridge/backend/broker", want: "imports only go down"},
		{name: "sideways", path: "backend/core/chat/c.go", imported: "bridge/backend/core/decision", want: "imports only go down"},
		{name: "a package without a layer", path: "backend/util/u.go", imported: "fmt", want: "has no layer"},
		{name: "an import without a layer", path: "backend/doors/cli/c.go", imported: "bridge/backend/util", want: "imports only go down"},
		{name: "out of the backend", path: "backend/doors/dashboard/d.go", imported: "bridge/frontend", want: "a main hands it over"},
		{name: "a test tool", path: "backend/doors/cli/c.go", imported: "bridge/backend/testing/realcli", want: "imports only go down"},
		{name: "a rule with files", path: "backend/core/decision/d.go", imported: "os", want: "may not import \"os\""},
		{name: "words with a database", path: "backend/core/bridge/b.go", imported: "database/sql", want: "may not import \"database/sql\""},
		{name: "a rule with addresses only", path: "backend/core/mail/m.go", imported: "net/url"},
		{name: "an adapter with files", path: "backend/platform/disk/d.go", imported: "os"},
		{name: "an answer that holds what the local link says", path: "backend/doors/dashboard/dto/s.go", imported: "bridge/backend/platform/ipc/api", want: "imports only go down"},
		{name: "an answer that holds a row of the store", path: "backend/doors/dashboard/dto/s.go", imported: "bridge/backend/storage/store", want: "imports only go down"},
		{name: "an answer that holds a report", path: "backend/doors/dashboard/dto/s.go", imported: "bridge/backend/storage/maintain", want: "imports only go down"},
		{name: "a rule that imports an adapter", path: "backend/core/mail/m.go", imported: "bridge/backend/platform/disk", want: "imports only go down"},
		{name: "a pure package outside of core", path: "backend/network/hub/subject/s.go", imported: "net", want: "may not import \"net\""},
		{name: "a higher wing", path: "backend/agent/a.go", imported: "bridge/backend/jobs", want: "between wings"},
		{name: "a higher floor of the wing", path: "backend/jobs/jobfiles/r.go", imported: "bridge/backend/jobs", want: "imports only go down"},
		{name: "a lower floor of the wing", path: "backend/jobs/j.go", imported: "bridge/backend/jobs/jobfiles"},
		{name: "a test tool beside its package", path: "backend/network/pairing/p.go", imported: "bridge/backend/network/hub/hubtest", want: "imports only go down"},
		{name: "a test", path: "backend/core/mail/m_test.go", imported: "bridge/backend/storage/store"},
		{name: "a main", path: "cmd/bridge/main.go", imported: "bridge/backend/doors/cli"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems := checkLayers([]source{parse(t, tt.path, "package p\n\nimport _ \""+tt.imported+"\"\n")})
			got := strings.Join(problems, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckCommentsFindsASilentPackage(t *testing.T) {
	silent := parse(t, "backend/core/mail/m.go", "package mail\n")
	wrong := parse(t, "backend/core/job/j.go", "// Jobs are here.\npackage job\n")
	right := parse(t, "backend/core/chat/c.go", "// Package chat is about chat.\npackage chat\n")
	command := parse(t, "cmd/bridge/main.go", "// Command bridge is the binary.\npackage main\n")
	problems := checkComments([]source{silent, wrong, right, command})
	if len(problems) != 2 || !strings.HasPrefix(problems[0], "backend/core/job:") || !strings.HasPrefix(problems[1], "backend/core/mail:") {
		t.Errorf("problems = %q, want those of job and mail", problems)
	}
}

func TestCheckWingsFindsWhatIsWrong(t *testing.T) {
	var all []source
	for name := range placeOf {
		all = append(all, parse(t, "backend/"+name+"/x.go", "package x\n"))
	}
	if problems := checkWings(all); len(problems) > 0 {
		t.Errorf("problems = %q, want none", problems)
	}
	outside := parse(t, "backend/util/u.go", "package util\n")
	inNone := parse(t, "backend/u.go", "package backend\n")
	tool := parse(t, "backend/testing/testkit/t.go", "package trial\n")
	problems := strings.Join(checkWings(append(all[1:], outside, inNone, tool)), "\n")
	for _, want := range []string{"backend/util is no wing", "backend/u.go is no wing", "which has no Go file"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems = %q, want %q", problems, want)
		}
	}
	if strings.Contains(problems, "testing") {
		t.Errorf("problems = %q, want none of the tests' wing", problems)
	}
}
