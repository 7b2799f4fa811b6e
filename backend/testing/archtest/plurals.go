package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// countedPlural matches a number and the plural that follows it, perhaps after an adjective:
// "%d files", "%d older sessions".
var countedPlural = regexp.MustCompile(`%d (?:([a-z]+) )?([a-z]{3,}s)\b(?:[^=]|$)`)

// noPlurals are words with an s at the end that are no plural of a noun.
var noPlurals = []string{"has", "was", "its", "this", "less", "names", "needs", "offers", "says", "ends", "does", "goes", "lives", "waits", "wakes", "exists", "descends"}

// noAdjectives are words between a number and a plural that part the two.
var noAdjectives = []string{"of", "in", "to", "and", "or", "on", "at", "by", "for", "is", "with", "each", "than", "from"}

// checkPlurals returns one sentence for each format of the product that writes a number and
// a plural, such as "%d files", which would be "1 files" for one. [bridge.Counted] writes
// both. A constant needs none of it, because it is more than one.
func checkPlurals(sources []source) []string {
	constants := constantsOf(sources)
	var problems []string
	for _, source := range sources {
		if source.isTool() {
			continue
		}
		ast.Inspect(source.file, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if !is {
				return true
			}
			for i, argument := range call.Args {
				for _, plural := range pluralsIn(formatOf(argument)) {
					if value := i + 1 + plural.verb; value < len(call.Args) && isConstant(call.Args[value], constants) {
						continue
					}
					problems = append(problems, fmt.Sprintf("%s:%d: %q is wrong for one: write it with bridge.Counted", source.path, source.set.Position(argument.Pos()).Line, plural.text))
				}
			}
			return true
		})
	}
	slices.Sort(problems)
	return problems
}

// plural is a number with a plural in a format: verb is the index of its value among the
// format's values.
type plural struct {
	text string
	verb int
}

func pluralsIn(format string) (found []plural) {
	for _, at := range countedPlural.FindAllStringSubmatchIndex(format, -1) {
		adjective, noun := "", format[at[4]:at[5]]
		if at[2] >= 0 {
			adjective = format[at[2]:at[3]]
		}
		if slices.Contains(noPlurals, noun) || slices.Contains(noAdjectives, adjective) || slices.Contains(noPlurals, adjective) {
			continue
		}
		before := strings.ReplaceAll(format[:at[0]], "%%", "")
		found = append(found, plural{format[at[0]:at[5]], strings.Count(before, "%")})
	}
	return found
}

// formatOf returns the text of an expression that is a string, or a sum of strings.
func formatOf(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if expr.Kind == token.STRING {
			text, _ := strconv.Unquote(expr.Value) // the parser has accepted it
			return text
		}
	case *ast.BinaryExpr:
		return formatOf(expr.X) + formatOf(expr.Y)
	}
	return ""
}

// constantsOf returns the names of all constants of the module.
func constantsOf(sources []source) map[string]bool {
	names := map[string]bool{}
	for _, source := range sources {
		ast.Inspect(source.file, func(node ast.Node) bool {
			if declared, is := node.(*ast.GenDecl); is && declared.Tok == token.CONST {
				for _, spec := range declared.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						names[name.Name] = true
					}
				}
			}
			return true
		})
	}
	return names
}

// isConstant reports whether an expression is a constant, also of another package, or is
// computed of one and a number.
func isConstant(expr ast.Expr, constants map[string]bool) bool {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return constants[expr.Name]
	case *ast.SelectorExpr:
		return constants[expr.Sel.Name]
	case *ast.BinaryExpr:
		return isConstant(expr.X, constants) && isConstant(expr.Y, constants)
	}
	return false
}
