package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// typeCheck checks that the code and its tests are what the compiler for another
// system takes. It is many times quicker than to compile for that system all that they
// are built on, of which it reads no more than the declarations.
func (p project) typeCheck(ctx context.Context, system string) error {
	p.say("checking the types for %s", system)
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes | packages.NeedModule,
		Context: ctx, Dir: p.root, Tests: true,
		Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		ParseFile: func(files *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, p.root+string(os.PathSeparator)) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return fmt.Errorf("checking the types for %s: %w", system, err)
	}
	var failed error
	for _, item := range loaded {
		if strings.HasSuffix(item.ID, ".test") { // go's own, and without its bodies
			continue
		}
		for _, wrong := range item.Errors {
			fmt.Fprintln(p.output, wrong)
			failed = errors.Join(failed, fmt.Errorf("%s: %w", system, wrong))
		}
	}
	return failed
}

// withoutBodies leaves of the functions of a file what their callers see.
func withoutBodies(file *ast.File) {
	for _, declared := range file.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
}
