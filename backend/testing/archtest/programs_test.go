package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// programsWritten lists the calls of [os.WriteFile] that make an executable file, as
// file:line. [testkit.WriteProgram] is the one for files that a test runs: otherwise a
// process that starts meanwhile can hold the file open, and running it fails.
func programsWritten(source source) []string {
	var found []string
	ast.Inspect(source.file, func(node ast.Node) bool {
		call, isCall := node.(*ast.CallExpr)
		if !isCall || len(call.Args) != 3 {
			return true
		}
		function, isSelector := call.Fun.(*ast.SelectorExpr)
		if !isSelector || function.Sel.Name != "WriteFile" {
			return true
		}
		mode, isNumber := call.Args[2].(*ast.BasicLit)
		if isNumber && mode.Kind == token.INT && strings.ContainsAny(strings.TrimPrefix(mode.Value, "0o"), "1357") {
			found = append(found, fmt.Sprintf("%s:%d", source.path, source.set.Position(node.Pos()).Line))
		}
		return true
	})
	return found
}

func TestTestsWriteProgramsWithWriteProgram(t *testing.T) {
	example := parse(t, "backend/p/p_test.go", "package p\nfunc f() { os.WriteFile(\"x\", nil, 0o700); os.WriteFile(\"y\", nil, 0o600) }")
	if found := programsWritten(example); len(found) != 1 {
		t.Fatalf("programsWritten = %q, want one", found)
	}
	for _, source := range module(t) {
		if !source.isTest() {
			continue
		}
		for _, place := range programsWritten(source) {
			t.Errorf("%s: write a program with testkit.WriteProgram", place)
		}
	}
}
