package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
)

// removingNames are the functions, methods and constants that take bytes or
// names away, as they are written after the dot.
var removingNames = []string{
	"Remove", "RemoveAll", "Truncate", "O_TRUNC", "Create", "WriteFile",
	"Unlink", "Unlinkat", "Rmdir", "DeleteFile", "RemoveDirectory", "Ftruncate",
}

// removingPackages are the imports behind which such a name counts. Truncate is
// also a method of files and counts behind any value.
var removingPackages = []string{"os", "syscall", "unix", "windows"}

// removingSQL finds statements that take rows or tables away.
var removingSQL = regexp.MustCompile(`(?i)\b(DELETE\s+FROM|DROP\s+(TABLE|INDEX|TRIGGER|VIEW|COLUMN)|REPLACE\s+INTO|INSERT\s+OR\s+REPLACE)\b`)

// removal is one place that takes stored data away.
type removal struct {
	where string // package folder, a dot, and the function around it: backend/platform/disk.dropTemp
	what  string // os.Remove, or the SQL words
	line  string // file:line, for people
}

// removalsIn lists the removals of the product's code.
func removalsIn(sources []source) []removal {
	var found []removal
	for _, source := range sources {
		if source.isTool() {
			continue
		}
		for _, declaration := range source.file.Decls {
			where := path.Dir(source.path) + "." + nameOf(declaration)
			ast.Inspect(declaration, func(node ast.Node) bool {
				what := removes(node)
				if what != "" {
					line := fmt.Sprintf("%s:%d", source.path, source.set.Position(node.Pos()).Line)
					found = append(found, removal{where: where, what: what, line: line})
				}
				return true
			})
		}
	}
	return found
}

// removes names what node takes away, or "".
func removes(node ast.Node) string {
	switch node := node.(type) {
	case *ast.SelectorExpr:
		if !slices.Contains(removingNames, node.Sel.Name) {
			return ""
		}
		behind, isName := node.X.(*ast.Ident)
		if isName && slices.Contains(removingPackages, behind.Name) {
			return behind.Name + "." + node.Sel.Name
		}
		if node.Sel.Name == "Truncate" {
			return "Truncate"
		}
	case *ast.BasicLit:
		if node.Kind != token.STRING {
			return ""
		}
		text, err := strconv.Unquote(node.Value)
		if err == nil {
			return removingSQL.FindString(text)
		}
	}
	return ""
}

// nameOf names a function, a method as Type.Method, or the first name of
// another declaration.
func nameOf(declaration ast.Decl) string {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil {
			return declaration.Name.Name
		}
		receiver := declaration.Recv.List[0].Type
		if star, isPointer := receiver.(*ast.StarExpr); isPointer {
			receiver = star.X
		}
		if name, isName := receiver.(*ast.Ident); isName {
			return name.Name + "." + declaration.Name.Name
		}
		return declaration.Name.Name
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			if value, isValue := spec.(*ast.ValueSpec); isValue {
				return value.Names[0].Name
			}
		}
	}
	return "?"
}

// checkRemovals compares the removals found with those that are allowed, in
// both directions: a new one has to be thought about, and an entry that
// matches nothing any more goes.
func checkRemovals(found []removal, allowed map[string]string) []string {
	var problems []string
	unused := maps.Clone(allowed)
	for _, removal := range found {
		key := removal.where + " " + removal.what
		if allowed[key] == "" {
			problems = append(problems, fmt.Sprintf("%s: %q is not in the list of removals (archtest/removals_test.go): say there why nothing is lost", removal.line, key))
		}
		delete(unused, key)
	}
	for _, key := range slices.Sorted(maps.Keys(unused)) {
		problems = append(problems, fmt.Sprintf("the list of removals names %q, which is not in the code", key))
	}
	return problems
}
