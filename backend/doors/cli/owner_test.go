package cli

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sandbox"
)

// ownersArgs are arguments by which each of the owner's commands gets as far as to ask who
// runs it.
var ownersArgs = map[string]string{
	"allow": "desk messages", "answer": "x --text y", "approve": "x", "config": "get", "decide": "topic text", "deny": "desk all", "files --cancel": "x", "finish": "x --keep", "install": "claude --yes", "join": "hub.example --code-stdin",
	"leave": "", "link": "127.0.0.1:1 --code-stdin", "needs": "", "needs --away": "on", "network off": "", "network on": "", "pair": "", "pause": "web api", "resume": "web api", "rules": "", "send-file": "desk x", "uninstall": "--yes", "unlink": "desk",
}

// Each command of the owner's is refused within a job, before anything is made.
func TestSEC_07_TheOwnersCommandsAreRefusedWithinAJob(t *testing.T) {
	for _, command := range bridge.OwnerCommands() {
		t.Run("SEC-07 "+command.Words, func(t *testing.T) {
			args, known := ownersArgs[command.Words]
			if !known {
				t.Fatal("the test knows no arguments for it")
			}
			home := filepath.Join(t.TempDir(), "home")
			var out, errs bytes.Buffer
			app := App{
				Args: append(strings.Fields(command.Words+" "+args), "--home", home), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
				Getenv: func(name string) string {
					return map[string]string{sandbox.JobVariable: "codex-job-1", "HOME": t.TempDir()}[name]
				},
				Now: time.Now, Page: fstest.MapFS{},
			}
			if code := app.Run(context.Background()); code == 0 || !strings.Contains(errs.String(), "only the owner "+command.Does+": this was asked for from within codex-job-1") {
				t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
			}
			if matches, _ := filepath.Glob(home); len(matches) > 0 {
				t.Error("it has made the home")
			}
		})
	}
}

// What a command refuses to others by name is in the list, so the agents' own rules have it,
// too.
func TestSEC_07_WhatIsRefusedIsInTheList(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, below...)
	seen := 0
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, isCall := node.(*ast.CallExpr)
			if !isCall || len(call.Args) != 1 {
				return true
			}
			if called, isMethod := call.Fun.(*ast.SelectorExpr); !isMethod || !strings.EqualFold(called.Sel.Name, "onlyOwner") {
				return true
			}
			if literal, isText := call.Args[0].(*ast.BasicLit); isText {
				words, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				bridge.OwnerDoes(words) // which panics
				seen++
			}
			return true
		})
	}
	if seen < 10 {
		t.Errorf("only %d commands ask who runs them", seen)
	}
}
