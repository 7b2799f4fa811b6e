package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// noNouns are words that name nothing by themselves, each with the kind of noun that a
// field, parameter or variable has instead. "to" may stand beside a "from": the two are the
// ends of a range, a copy or a move.
var noNouns = map[string]string{
	"of": "what it is: sessionID, jobs, doctor", "to": "what it is: recipient, target, out",
	"by": "what it is: answerer, transport, publisher", "it": "what it is: item, job, entry", "one": "what it is: job, rule, item",
}

// noValues are words that say what happened to a value, and not what it is. They name no
// field, parameter, result or variable of the product, except in olderNames.
var noValues = map[string]string{
	"said": "text, output, request", "told": "reported, printed", "kept": "stored, existing", "there": "exists, existing, held",
	"heard": "received, notified", "lacks": "missing", "mine": "isOwn, local", "theirs": "incoming, peerShare", "begun": "started", "handed": "delivered",
	"gone": "deleted, missing", "whole": "complete, full", "given": "requested, delivered", "fits": "matches, isComplete",
	"word": "token, name, text", "words": "args, tokens, text", "asked": "requested, request", "shown": "view, visible",
	"taken": "accepted, elapsed", "left": "remaining, pending", "again": "retry, retryAt, exists", "fresh": "isNew, added, current",
}

// olderNames are the folders whose names are not yet all nouns.
var olderNames = []string{
	"backend/agent/", "backend/core/hooks/", "backend/core/delivery/",
}

// noNounOf returns what to say instead of a name, and whether the name is none.
func noNounOf(path, name string) (instead string, isNone bool) {
	if instead, isNone = noNouns[name]; isNone {
		return instead, true
	}
	if slices.ContainsFunc(olderNames, func(folder string) bool { return strings.HasPrefix(path, folder) }) {
		return "", false
	}
	instead, isNone = noValues[name]
	return instead, isNone
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
				instead, none := noNounOf(source.path, name.Name)
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
