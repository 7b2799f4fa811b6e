package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// The sizes beyond which a reader loses the overview. Tests may have long tables:
// their sizes are not held.
const (
	mostFunctionLines = 60
	mostPackageLines  = 3500
	leastPackageLines = 60
	mostMethods       = 40
)

// checkSizes returns one sentence for each function, type or package of the product
// that is too large, and for each package that is too small to be one.
func checkSizes(sources []source) []string {
	lines, methods := map[string]int{}, map[string]int{}
	var problems []string
	for _, source := range sources {
		if source.isTool() {
			continue
		}
		folder := path.Dir(source.path)
		lines[folder] += source.set.File(source.file.FileStart).LineCount()
		for _, declared := range source.file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if long := source.linesOf(function); long > mostFunctionLines {
				problems = append(problems, fmt.Sprintf("%s: %s has %d lines: at most %d fit on a screen", source.path, function.Name.Name, long, mostFunctionLines))
			}
			if function.Recv != nil {
				methods[folder+"."+receiver(function)]++
			}
		}
	}
	for folder, n := range lines {
		switch {
		case n > mostPackageLines:
			problems = append(problems, fmt.Sprintf("%s has %d lines: part it, at most %d are one thought", folder, n, mostPackageLines))
		case n < leastPackageLines && !strings.HasPrefix(folder, "cmd/") && folder != "frontend":
			problems = append(problems, fmt.Sprintf("%s has %d lines: below %d it is part of another package", folder, n, leastPackageLines))
		}
	}
	for name, n := range methods {
		if n > mostMethods {
			problems = append(problems, fmt.Sprintf("%s has %d methods: part it, at most %d are one thing", name, n, mostMethods))
		}
	}
	slices.Sort(problems)
	return problems
}

func (s source) linesOf(node ast.Node) int {
	return s.set.Position(node.End()).Line - s.set.Position(node.Pos()).Line + 1
}

// receiver is the name of the type that a method is of.
func receiver(function *ast.FuncDecl) string {
	of := function.Recv.List[0].Type
	for {
		switch inner := of.(type) {
		case *ast.StarExpr:
			of = inner.X
		case *ast.IndexExpr:
			of = inner.X
		case *ast.IndexListExpr:
			of = inner.X
		case *ast.Ident:
			return inner.Name
		default:
			return ""
		}
	}
}
