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
	sources, err := load("../..", "app", "backend", "build", "cmd", "frontend")
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
		{name: "down", path: "backend/broker/b.go", imported: "bridge/backend/store"},
		{name: "up", path: "backend/store/s.go", imported: "bridge/backend/broker", want: "imports only go down"},
		{name: "sideways", path: "backend/chat/c.go", imported: "bridge/backend/decision", want: "imports only go down"},
		{name: "a package without a layer", path: "backend/util/u.go", imported: "fmt", want: "has no layer"},
		{name: "an import without a layer", path: "backend/cli/c.go", imported: "bridge/backend/util", want: "imports only go down"},
		{name: "out of the backend", path: "backend/dashboard/d.go", imported: "bridge/frontend", want: "a main hands it over"},
		{name: "a test tool", path: "backend/cli/c.go", imported: "bridge/backend/realcli", want: "imports only go down"},
		{name: "a rule with files", path: "backend/decision/d.go", imported: "os", want: "may not import \"os\""},
		{name: "words with a database", path: "backend/bridge/b.go", imported: "database/sql", want: "may not import \"database/sql\""},
		{name: "a rule with addresses only", path: "backend/mail/m.go", imported: "net/url"},
		{name: "an adapter with files", path: "backend/disk/d.go", imported: "os"},
		{name: "an answer that holds what the local link says", path: "backend/dashboard/shape/s.go", imported: "bridge/backend/ipc/api", want: "imports only go down"},
		{name: "an answer that holds a row of the store", path: "backend/dashboard/shape/s.go", imported: "bridge/backend/store", want: "imports only go down"},
		{name: "an answer that holds a report", path: "backend/dashboard/shape/s.go", imported: "bridge/backend/maintain", want: "imports only go down"},
		{name: "a test", path: "backend/mail/m_test.go", imported: "bridge/backend/store"},
		{name: "a main", path: "cmd/bridge/main.go", imported: "bridge/backend/cli"},
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
	silent := parse(t, "backend/mail/m.go", "package mail\n")
	wrong := parse(t, "backend/job/j.go", "// Jobs are here.\npackage job\n")
	right := parse(t, "backend/chat/c.go", "// Package chat is about chat.\npackage chat\n")
	command := parse(t, "cmd/bridge/main.go", "// Command bridge is the binary.\npackage main\n")
	problems := checkComments([]source{silent, wrong, right, command})
	if len(problems) != 2 || !strings.HasPrefix(problems[0], "backend/job:") || !strings.HasPrefix(problems[1], "backend/mail:") {
		t.Errorf("problems = %q, want those of job and mail", problems)
	}
}
