package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// noNouns are words that name nothing by themselves, each with the kind of noun that a
// field, parameter or variable has instead. "to" may stand beside a "from": the two are the
// ends of a range, a copy or a move.
var noNouns = map[string]string{
	"of": "what it is: sessionID, jobs, doctor", "to": "what it is: recipient, target, out",
	"by": "what it is: answerer, transport, publisher", "it": "what it is: item, job, entry", "one": "what it is: job, rule, item",
}

// checkNouns returns one sentence for each field, parameter, result and variable of the
// product that has no noun for a name. Tests may write tables with such members.
func checkNouns(sources []source) []string {
	var problems []string
	for _, source := range sources {
		if source.isTest() {
			continue
		}
		say := func(names []*ast.Ident) {
			from := slices.ContainsFunc(names, func(name *ast.Ident) bool { return name.Name == "from" })
			for _, name := range names {
				instead, none := noNouns[name.Name]
				if none && !(name.Name == "to" && from) {
					problems = append(problems, fmt.Sprintf("%s:%d: %q is no noun: say %s", source.path, source.set.Position(name.Pos()).Line, name.Name, instead))
				}
			}
		}
		ast.Inspect(source.file, func(node ast.Node) bool {
			for _, names := range namedTogether(node) {
				say(names)
			}
			return true
		})
	}
	slices.Sort(problems)
	return problems
}

// namedTogether returns the names that a node declares, in groups of those that a reader
// sees together: a struct's fields, a function's parameters, the left side of an assignment.
func namedTogether(node ast.Node) [][]*ast.Ident {
	switch declared := node.(type) {
	case *ast.StructType:
		return [][]*ast.Ident{namesOf(declared.Fields)}
	case *ast.FuncType:
		return [][]*ast.Ident{namesOf(declared.Params), namesOf(declared.Results)}
	case *ast.ValueSpec:
		return [][]*ast.Ident{declared.Names}
	case *ast.RangeStmt:
		if declared.Tok == token.DEFINE {
			return [][]*ast.Ident{identifiers(declared.Key, declared.Value)}
		}
	case *ast.AssignStmt:
		if declared.Tok == token.DEFINE {
			return [][]*ast.Ident{identifiers(declared.Lhs...)}
		}
	}
	return nil
}

func namesOf(list *ast.FieldList) (names []*ast.Ident) {
	if list != nil {
		for _, field := range list.List {
			names = append(names, field.Names...)
		}
	}
	return names
}

func identifiers(expressions ...ast.Expr) (names []*ast.Ident) {
	for _, expression := range expressions {
		if name, is := expression.(*ast.Ident); is {
			names = append(names, name)
		}
	}
	return names
}
