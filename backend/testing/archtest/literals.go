package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// constructed are the structs that one function makes, by package folder and name, with that
// function: a field that is added there reaches every user.
var constructed = map[string]string{
	"backend/storage/maintain.Maintenance": "maintain.New",
}

// checkLiterals returns one sentence for each literal of such a struct outside of its package.
// Tests may make them.
func checkLiterals(sources []source) []string {
	var problems []string
	for _, source := range sources {
		if source.isTool() {
			continue
		}
		imported := map[string]string{} // by name, the folder
		for _, name := range importsOf(source) {
			imported[path.Base(name)] = strings.TrimPrefix(name, "bridge/")
		}
		ast.Inspect(source.file, func(node ast.Node) bool {
			literal, ok := node.(*ast.CompositeLit)
			if !ok {
				return true
			}
			expr, ok := literal.Type.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := expr.X.(*ast.Ident)
			if !ok {
				return true
			}
			if maker := constructed[imported[pkg.Name]+"."+expr.Sel.Name]; maker != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: make %s.%s by %s", source.path, source.set.Position(node.Pos()).Line, pkg.Name, expr.Sel.Name, maker))
			}
			return true
		})
	}
	return problems
}
