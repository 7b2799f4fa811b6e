package archtest

import (
	"fmt"
	"strings"
	"testing"
)

func TestNothingIsTooLargeToBeRead(t *testing.T) { report(t, checkSizes(module(t))) }

func TestCheckSizesFindsWhatIsTooLarge(t *testing.T) {
	function := func(name string, lines int) string {
		return fmt.Sprintf("func %s() {%s}\n", name, strings.Repeat("\n", lines-1))
	}
	methods := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "func (x *T[A]) m%d() {}\n", i)
		}
		return "type T[A any] struct{}\n" + text.String()
	}
	fields := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "\tf%d int\n", i)
		}
		return "type T struct {\n" + text.String() + "}\n"
	}
	const (
		functions = "func a(ctx context.Context, t *T[int]) {}\nfunc b(t *other.T) {}\nfunc c(t T[int]) {}\n"
		hub       = "backend/network/hub/h.go"
	)
	const header = "package p\n\n"
	room := strings.Repeat("\n", 60)
	for _, tt := range []struct{ name, path, text, want string }{
		{name: "a function of 60 lines", path: "backend/core/chat/c.go", text: room + function("f", 60)},
		{name: "a function of 61 lines", path: "backend/core/chat/c.go", text: room + function("f", 61), want: "f has 61 lines"},
		{name: "a type of 40 methods", path: "backend/core/chat/c.go", text: room + methods(40)},
		{name: "a type of 41 methods", path: "backend/core/chat/c.go", text: room + methods(41), want: "T has 41 methods"},
		{name: "a method's receiver as an argument", path: "backend/core/chat/c.go", text: room + methods(40) + functions, want: "T has 41 methods"},
		{name: "receivers that are none", path: "backend/core/chat/c.go", text: room + methods(39) + functions},
		{name: "a struct of 20 fields", path: "backend/core/chat/c.go", text: room + fields(20)},
		{name: "a struct of 21 fields", path: "backend/core/chat/c.go", text: room + fields(19) + "type U struct { a, b int; fields }\n" + strings.Replace(fields(21), "T", "V", 1), want: "V has 21 fields"},
		{name: "an exception", path: hub, text: room + strings.Replace(fields(exceptions["backend/network/hub.Hub"].fields+1), "T", "Hub", 1), want: "fields: its exception allows"},
		{name: "an exception that is not needed", path: hub, text: room + strings.Replace(fields(1), "T", "Hub", 1), want: "lower its exception"},
		{name: "a task of the build", path: "build/b.go", text: room + function("f", 61), want: "f has 61 lines"},
		{name: "a package of 60 lines", path: "backend/core/chat/c.go", text: strings.Repeat("\n", 58)},
		{name: "a package of 59 lines", path: "backend/core/chat/c.go", text: strings.Repeat("\n", 57), want: "backend/core/chat has 59 lines"},
		{name: "a program of three lines", path: "cmd/bridge/main.go", text: "\n"},
		{name: "a package of 3,500 lines", path: "backend/core/chat/c.go", text: strings.Repeat("\n", 3498)},
		{name: "a package of 3,501 lines", path: "backend/core/chat/c.go", text: strings.Repeat("\n", 3499), want: "backend/core/chat has 3501 lines"},
		{name: "a long test", path: "backend/core/chat/c_test.go", text: function("f", 100)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(checkSizes([]source{parse(t, tt.path, header+tt.text)}), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems = %q, want %q", got, tt.want)
			}
		})
	}
}
