package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// givenUp are the words that were given up for the field's own, each with what is
// said instead. Names of JSON members, columns and files that other programs know,
// such as a lease's "loan", stay as they are: they stand in strings.
var givenUp = map[string]string{
	"lend": "lease", "lends": "lease", "lent": "leased", "lending": "leasing", "loan": "lease", "loans": "leases",
	"keeper": "reconnector or checkpointer", "caretaker": "the part's own name", "calm": "throttle, or idle",
	"glance": "a quick look", "supplement": "sidecar", "cold": "archive", "grams": "trigrams", "hunt": "search",
	"readdress": "reassign", "urge": "priority", "displace": "back up", "heights": "layers",
}

// givenUpNames are whole names that say nothing of what they name. Within a longer name
// they may stand.
var givenUpNames = map[string]string{"one": "the noun: job, rule, item"}

// givenUpPhrases are the same in comments.
var givenUpPhrases = regexp.MustCompile(`(?i)\b(made anew|can not|on loan|that seldom|has the home for itself)\b`)

// vaguePeople are words that name no one in a comment of the product.
var vaguePeople = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody)\b`)

// checkWords returns one sentence for each given-up word in a declared name, and for
// each given-up phrase in a comment.
func checkWords(sources []source) []string {
	var problems []string
	for _, source := range sources {
		if strings.HasPrefix(source.path, "backend/testing/archtest/") {
			continue
		}
		say := func(node ast.Node, found, instead string) {
			problems = append(problems, fmt.Sprintf("%s:%d: %q was given up: say %s", source.path, source.set.Position(node.Pos()).Line, found, instead))
		}
		for name := range declaredNames(source.file) {
			if instead, found := givenUpNames[name.Name]; found {
				say(name, name.Name, instead)
			}
			for _, part := range wordsOf(name.Name) {
				if instead, found := givenUp[part]; found {
					say(name, name.Name, instead)
				}
			}
		}
		for _, comment := range source.file.Comments {
			if found := givenUpPhrases.FindString(comment.Text()); found != "" {
				say(comment, found, "it in one plain word")
			}
			if found := vaguePeople.FindString(comment.Text()); found != "" && !source.isTest() {
				say(comment, found, "who: the owner, a session, a caller; or use the passive")
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// declaredNames are the names that a file gives, of whatever kind.
func declaredNames(file *ast.File) map[*ast.Ident]bool {
	names := map[*ast.Ident]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch declared := node.(type) {
		case *ast.FuncDecl:
			names[declared.Name] = true
		case *ast.TypeSpec:
			names[declared.Name] = true
		case *ast.ValueSpec:
			for _, name := range declared.Names {
				names[name] = true
			}
		case *ast.Field:
			for _, name := range declared.Names {
				names[name] = true
			}
		case *ast.RangeStmt:
			for _, variable := range []ast.Expr{declared.Key, declared.Value} {
				if name, ok := variable.(*ast.Ident); ok && declared.Tok == token.DEFINE {
					names[name] = true
				}
			}
		case *ast.AssignStmt:
			for _, lh := range declared.Lhs {
				if name, ok := lh.(*ast.Ident); ok && declared.Tok == token.DEFINE {
					names[name] = true
				}
			}
		}
		return true
	})
	return names
}

// wordsOf parts a name at its capitals and underscores: tryLend is try and lend.
func wordsOf(name string) []string {
	var parts []string
	part := ""
	for _, r := range name + "_" {
		if r == '_' || unicode.IsUpper(r) {
			if part != "" {
				parts = append(parts, strings.ToLower(part))
			}
			part = ""
		}
		if r != '_' {
			part += string(r)
		}
	}
	return parts
}
