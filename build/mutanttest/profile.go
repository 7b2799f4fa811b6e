package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// module begins the names of files in a coverage profile.
const module = "bridge/"

// block is a part of a file in a coverage profile, from a line and column to others.
type block struct {
	fromLine, fromColumn, toLine, toColumn int
}

// contains reports whether a position lies within the block.
func (b block) contains(at token.Position) bool {
	after := at.Line > b.fromLine || at.Line == b.fromLine && at.Column >= b.fromColumn
	before := at.Line < b.toLine || at.Line == b.toLine && at.Column < b.toColumn
	return after && before
}

// widenProfile adds blocks to a coverage profile: the expressions of the cases of each
// switch that was reached, and the initial values of variables and constants of a package.
// The sources lie below root.
func widenProfile(profile, root string) error {
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	covered := map[string][]block{}
	for line := range strings.Lines(string(text)) {
		name, b, count, err := readBlock(line)
		if err != nil {
			return fmt.Errorf("%s: %w", profile, err)
		}
		if name == "" {
			continue
		}
		if covered[name] == nil {
			covered[name] = []block{}
		}
		if count > 0 {
			covered[name] = append(covered[name], b)
		}
	}
	var added strings.Builder
	for name, blocks := range covered {
		within, ok := strings.CutPrefix(name, module)
		if !ok {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, filepath.FromSlash(within)), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, b := range unlistedBlocks(set, file, blocks) {
			fmt.Fprintf(&added, "%s:%d.%d,%d.%d 1 1\n", name, b.fromLine, b.fromColumn, b.toLine, b.toColumn)
		}
	}
	return os.WriteFile(profile, append(text, added.String()...), 0o644)
}

// readBlock reads a line of a coverage profile. Its first line has no name.
func readBlock(line string) (name string, b block, count int, err error) {
	if strings.HasPrefix(line, "mode:") {
		return "", block{}, 0, nil
	}
	at := strings.LastIndex(line, ":")
	if at < 0 {
		return "", block{}, 0, fmt.Errorf("a line without a file: %q", line)
	}
	var statements int
	_, err = fmt.Sscanf(line[at+1:], "%d.%d,%d.%d %d %d", &b.fromLine, &b.fromColumn, &b.toLine, &b.toColumn, &statements, &count)
	if err != nil {
		return "", block{}, 0, fmt.Errorf("%q: %w", line, err)
	}
	return line[:at], b, count, nil
}

// unlistedBlocks returns what ran in a file and has no block: the expressions of cases of
// a switch in a covered block, and the values of package variables and constants.
func unlistedBlocks(set *token.FileSet, file *ast.File, covered []block) (found []block) {
	add := func(from, pos token.Pos) {
		begin, end := set.Position(from), set.Position(pos)
		found = append(found, block{begin.Line, begin.Column, end.Line, end.Column})
	}
	for _, declared := range file.Decls {
		if values, ok := declared.(*ast.GenDecl); ok && (values.Tok == token.VAR || values.Tok == token.CONST) {
			for _, spec := range values.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					for _, expression := range value.Values {
						if !holdsFunction(expression) {
							add(expression.Pos(), expression.End())
						}
					}
				}
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		choice, ok := node.(*ast.SwitchStmt)
		if !ok || !slices.ContainsFunc(covered, func(b block) bool { return b.contains(set.Position(choice.Switch)) }) {
			return true
		}
		for _, statement := range choice.Body.List {
			if clause, ok := statement.(*ast.CaseClause); ok && len(clause.List) > 0 {
				add(clause.List[0].Pos(), clause.Colon)
			}
		}
		return true
	})
	return found
}

// holdsFunction reports whether a function literal, which has blocks of its own, is part of
// an expression.
func holdsFunction(expression ast.Expr) (holds bool) {
	ast.Inspect(expression, func(node ast.Node) bool {
		_, ok := node.(*ast.FuncLit)
		holds = holds || ok
		return !holds
	})
	return holds
}
