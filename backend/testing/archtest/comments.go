package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// checkDocNames returns one sentence for each function, method and type whose doc comment
// does not begin with its name.
func checkDocNames(sources []source) []string {
	var problems []string
	for _, source := range sources {
		if source.isTest() {
			continue
		}
		for _, decl := range source.file.Decls {
			for _, documented := range documentedIn(decl) {
				if beginsWith(documented.doc.Text(), documented.name) {
					continue
				}
				problems = append(problems, fmt.Sprintf("%s:%d: the doc comment of %s does not begin with its name",
					source.path, source.set.Position(documented.doc.Pos()).Line, documented.name))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// documented is a declared name with its doc comment.
type documented struct {
	name string
	doc  *ast.CommentGroup
}

// documentedIn returns the functions and types of a declaration that have a doc comment. Types
// that share one comment are left out.
func documentedIn(decl ast.Decl) (found []documented) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Doc != nil {
			found = append(found, documented{decl.Name.Name, decl.Doc})
		}
	case *ast.GenDecl:
		if decl.Tok != token.TYPE {
			return nil
		}
		for _, spec := range decl.Specs {
			named := spec.(*ast.TypeSpec)
			doc := named.Doc
			if doc == nil && !decl.Lparen.IsValid() {
				doc = decl.Doc
			}
			if doc != nil {
				found = append(found, documented{named.Name.Name, doc})
			}
		}
	}
	return found
}

// beginsWith reports whether a comment begins with the name, or with an article and the name. A
// comment that only directs a tool has no text.
func beginsWith(text, name string) bool {
	tokens := strings.Fields(text)
	if len(tokens) > 1 && slices.Contains([]string{"A", "An", "The"}, tokens[0]) {
		tokens = tokens[1:]
	}
	return len(tokens) == 0 || strings.TrimRight(tokens[0], ",:.") == name
}

// saysWhenItFails matches the part of a doc comment about an error.
var saysWhenItFails = regexp.MustCompile(`(?i)\b(fails?|failed|errors?|refuses?|refused|returns nil)\b`)

// failureDocs counts the exported functions and methods of the product whose last result is
// an error, and those of them whose doc comment says when they fail.
func failureDocs(sources []source) (documented, all int) {
	for _, source := range sources {
		if source.isTool() {
			continue
		}
		for _, decl := range source.file.Decls {
			function, is := decl.(*ast.FuncDecl)
			if !is || !function.Name.IsExported() || !returnsError(function.Type) {
				continue
			}
			all++
			if saysWhenItFails.MatchString(function.Doc.Text()) {
				documented++
			}
		}
	}
	return documented, all
}

func returnsError(function *ast.FuncType) bool {
	if function.Results == nil {
		return false
	}
	last := function.Results.List[len(function.Results.List)-1]
	name, is := last.Type.(*ast.Ident)
	return is && name.Name == "error"
}
