package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
)

// unit matches what says the unit of a number: in its name, in the name of its JSON member,
// or in its comment.
var unit = regexp.MustCompile(`(?i)(byte|millis|ms\b|second|mins|minute|hour|day|count|number|revision|_seq|sequence|percent|how many|version|cents|usd|tokens|messages|rows|place)`)

// checkUnits returns one sentence for each integer of 64 bits in a JSON document that does
// not say what it counts. Times have the type bridge.UnixMillis.
func checkUnits(sources []source) []string {
	var problems []string
	for _, source := range sources {
		if source.isTest() {
			continue
		}
		ast.Inspect(source.file, func(node ast.Node) bool {
			shape, ok := node.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range shape.Fields.List {
				if field.Tag == nil || len(field.Names) == 0 || !isInteger(field.Type) {
					continue
				}
				text := field.Tag.Value + field.Names[0].Name + " " + field.Doc.Text() + field.Comment.Text()
				if !unit.MatchString(text) {
					problems = append(problems, fmt.Sprintf("%s:%d: %s has no unit: give it the type bridge.UnixMillis, or a comment with what it counts",
						source.path, source.set.Position(field.Pos()).Line, field.Names[0].Name))
				}
			}
			return true
		})
	}
	slices.Sort(problems)
	return problems
}

// isInteger reports whether a type is int64 or uint64, or points to one.
func isInteger(expr ast.Expr) bool {
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr = pointer.X
	}
	name, ok := expr.(*ast.Ident)
	return ok && (name.Name == "int64" || name.Name == "uint64")
}
