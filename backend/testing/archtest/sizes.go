package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// The sizes beyond which a reader loses the overview. Tests may have long tables:
// their sizes are not held.
const (
	mostFunctionLines = 60
	mostPackageLines  = 3500
	leastPackageLines = 60
	mostMethods       = 40
	mostFields        = 20
)

// exception is a type that may be larger, up to the numbers given. They only fall.
type exception struct {
	methods, fields int // 0 for the usual limit
	reason          string
}

// exceptions are the types that are larger, by package folder and name.
var exceptions = map[string]exception{
	// Files and messages: each field is a member of a JSON document that other versions read.
	"backend/core/job.Job":                 {fields: 51, reason: "a row of jobs.json; to be grouped into Spec, Progress, Ending and Landing"},
	"backend/core/job.Spec":                {fields: 24, reason: "what a job is given"},
	"backend/core/job.Approval":            {fields: 31, reason: "a file of approvals/"},
	"backend/core/job/runs.SpecFile":       {fields: 25, reason: "a run's spec.json"},
	"backend/core/job/runs.StateFile":      {fields: 23, reason: "a run's state.json"},
	"backend/core/remote.JobState":         {fields: 24, reason: "a frame to a paired PC"},
	"backend/platform/ipc/api.JobView":     {fields: 25, reason: "an answer of the local link"},
	"backend/doors/dashboard/dto.Run":      {fields: 25, reason: "an answer of the dashboard"},
	"backend/doors/dashboard/dto.Approval": {fields: 23, reason: "an answer of the dashboard"},
	"backend/agent/driver.claudeLine":      {fields: 23, reason: "a line that Claude prints"},
	"backend/doors/dashboard.Options":      {fields: 28, reason: "what the daemon hands to the dashboard"},
	// Parts that are to be divided.
	"backend/network/hub.Hub":                {methods: 75, fields: 31, reason: "to become roster, presence, outbox and inbox"},
	"backend/network/hub/server.Server":      {methods: 48, reason: "to be divided as the client is"},
	"backend/doors/daemon.Daemon":            {methods: 54, fields: 29, reason: "its start is to become a list of steps"},
	"backend/doors/cli.App":                  {methods: 94, reason: "one function a command, each of which makes a cobra.Command"},
	"backend/doors/dashboard.Dashboard":      {fields: 21, reason: "one part a subject of the API"},
	"backend/jobs.run":                       {fields: 22, reason: "what is under way of one run"},
	"backend/jobs/runner.drive":              {methods: 41, fields: 26, reason: "the event loop of a run"},
	"backend/storage/store.Reader":           {methods: 43, reason: "one method a query"},
	"backend/storage/maintain/check.checker": {methods: 43, reason: "one method a check"},
	"backend/doors/mcpserver.Server":         {methods: 43, reason: "one method a tool"},
	"build.project":                          {methods: 51, reason: "one method a task"},
	"build/bench.lab":                        {methods: 55, reason: "one method a benchmark; to be divided by subject"},
}

// packageExceptions are the packages that may be larger, with their lines. They only fall.
var packageExceptions = map[string]int{
	"build":       4281, // the task runner: to be divided into packaging and testing
	"build/bench": 3748, // to be divided by subject
}

// checkSizes returns one sentence for each function, type or package that is too large, for
// each package that is too small to be one, and for each exception that is larger than
// needed. A function counts as a method of the type of its package that its first argument
// points to, a context left out: moving the receiver makes no type smaller.
func checkSizes(sources []source) []string {
	lines, methods, fields := map[string]int{}, map[string]int{}, map[string]int{}
	var problems []string
	for _, source := range sources {
		if source.isTest() {
			continue
		}
		folder := path.Dir(source.path)
		lines[folder] += source.set.File(source.file.FileStart).LineCount()
		for _, declared := range source.file.Decls {
			switch declared := declared.(type) {
			case *ast.FuncDecl:
				if long := source.linesOf(declared); long > mostFunctionLines {
					problems = append(problems, fmt.Sprintf("%s: %s has %d lines: at most %d fit on a screen", source.path, declared.Name.Name, long, mostFunctionLines))
				}
				if name := owner(declared); name != "" {
					methods[folder+"."+name]++
				}
			case *ast.GenDecl:
				for name, n := range structs(declared) {
					fields[folder+"."+name] = n
				}
			}
		}
	}
	for folder, n := range lines {
		switch {
		case packageExceptions[folder] > 0:
			problems = append(problems, tooMany(folder, "lines", n, mostPackageLines, packageExceptions[folder])...)
		case n > mostPackageLines:
			problems = append(problems, fmt.Sprintf("%s has %d lines: part it, at most %d are one thought", folder, n, mostPackageLines))
		case n < leastPackageLines && !strings.HasPrefix(folder, "cmd/") && folder != "frontend":
			problems = append(problems, fmt.Sprintf("%s has %d lines: below %d it is part of another package", folder, n, leastPackageLines))
		}
	}
	for name, n := range fields { // methods of other types are no concern: an interface has none here
		problems = append(problems, tooMany(name, "methods", methods[name], mostMethods, exceptions[name].methods)...)
		problems = append(problems, tooMany(name, "fields", n, mostFields, exceptions[name].fields)...)
	}
	slices.Sort(problems)
	return problems
}

// tooMany returns a sentence where a type has more of something than its limit, and where an
// exception is not needed any more or allows more than there is.
func tooMany(name, what string, n, most, excepted int) []string {
	switch {
	case excepted == 0 && n > most:
		return []string{fmt.Sprintf("%s has %d %s: part it, at most %d are one thing", name, n, what, most)}
	case excepted > 0 && n > excepted:
		return []string{fmt.Sprintf("%s has %d %s: its exception allows %d", name, n, what, excepted)}
	case excepted > 0 && n < excepted:
		return []string{fmt.Sprintf("%s has %d %s now: lower its exception from %d in archtest/sizes.go", name, n, what, excepted)}
	}
	return nil
}

// structs returns the structs that a declaration declares, with the number of their fields.
func structs(declared *ast.GenDecl) map[string]int {
	found := map[string]int{}
	for _, spec := range declared.Specs {
		named, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if shape, ok := named.Type.(*ast.StructType); ok {
			found[named.Name.Name] = 0
			for _, field := range shape.Fields.List {
				found[named.Name.Name] += max(1, len(field.Names)) // an embedded one has no name
			}
		}
	}
	return found
}

// owner returns the name of the type whose method a function is or could be, "" for none.
func owner(function *ast.FuncDecl) string {
	if function.Recv != nil {
		return typeName(function.Recv.List[0].Type)
	}
	for _, param := range function.Type.Params.List {
		if named, ok := param.Type.(*ast.SelectorExpr); ok && named.Sel.Name == "Context" {
			continue
		}
		if _, isPointer := param.Type.(*ast.StarExpr); isPointer {
			return typeName(param.Type)
		}
		return ""
	}
	return ""
}

func (s source) linesOf(node ast.Node) int {
	return s.set.Position(node.End()).Line - s.set.Position(node.Pos()).Line + 1
}

// typeName returns the name of a type of the same package behind pointers and type
// arguments, "" where it is another package's.
func typeName(expr ast.Expr) string {
	for {
		switch inner := expr.(type) {
		case *ast.StarExpr:
			expr = inner.X
		case *ast.IndexExpr:
			expr = inner.X
		case *ast.IndexListExpr:
			expr = inner.X
		case *ast.Ident:
			return inner.Name
		default:
			return ""
		}
	}
}
