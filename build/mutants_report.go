package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// knownMutants are what build/mutants.json says.
type knownMutants struct {
	// Limits hold packages that do not reach the shares yet, by folder. They only fall.
	Limits map[string]mutantLimit `json:"limits"`
	// Equivalent are mutants that no test can notice.
	Equivalent []equivalentMutant `json:"equivalent"`
}

// mutantLimit is how many mutants of a package may live, and may lie in lines that no test
// reaches, where that is more than the shares allow.
type mutantLimit struct {
	Lived      int `json:"lived,omitempty"`
	NotCovered int `json:"notCovered,omitempty"`
}

// equivalentMutant is a change after which a function does the same. It is known by the
// text of its line, which stays when lines are added above.
type equivalentMutant struct {
	File     string `json:"file"`
	Function string `json:"function"` // Name, or Type.Name of a method
	Kind     string `json:"kind"`
	Line     string `json:"line"` // without spaces around
	Count    int    `json:"count,omitempty"`
	Reason   string `json:"reason"`
}

// tally is what became of the mutants of one package.
type tally struct {
	folder                                          string
	killed, lived, notCovered, timedOut, equivalent int
	reviewed                                        []string // a line for each mutant that a person looks at
	failures, notes                                 []string
}

// count counts mutants of a package. Equivalent ones are left out of those that lived; it
// is a failure when one of them was killed or is there no longer.
func count(root string, m mutated, found []mutant, known knownMutants) (tally, error) {
	t := tally{folder: m.folder}
	remaining := map[int]int{} // how many are still expected of an equivalent mutant
	for i, e := range known.Equivalent {
		if path := filepath.ToSlash(filepath.Dir(e.File)); path == m.folder {
			remaining[i] = max(1, e.Count)
		}
	}
	sources := map[string]*mutatedSource{}
	for _, mutant := range found {
		switch mutant.status {
		case mutantKilled:
			t.killed++
			continue
		case mutantNotViable:
			continue
		}
		source := sources[mutant.file]
		if source == nil {
			var err error
			if source, err = readMutatedSource(filepath.Join(root, filepath.FromSlash(mutant.file))); err != nil {
				return tally{}, err
			}
			sources[mutant.file] = source
		}
		function, line := source.at(mutant.line)
		if i := slices.IndexFunc(known.Equivalent, func(e equivalentMutant) bool {
			return e.File == mutant.file && e.Function == function && e.Kind == mutant.kind && e.Line == line
		}); i >= 0 && remaining[i] > 0 && mutant.status == mutantLived {
			remaining[i]--
			t.equivalent++
			continue
		}
		switch mutant.status {
		case mutantLived:
			t.lived++
		case mutantNotCovered:
			t.notCovered++
		default:
			t.timedOut++
		}
		t.reviewed = append(t.reviewed, fmt.Sprintf("%-11s %s:%d:%d %s in %s: %s", mutant.status, mutant.file, mutant.line, mutant.column, mutant.kind, function, line))
	}
	for i, e := range known.Equivalent {
		if remaining[i] > 0 {
			t.failures = append(t.failures, fmt.Sprintf("%s: %s in %s did not live: take %q out of build/mutants.json", e.File, e.Kind, e.Function, e.Line))
		}
	}
	t.judge(known.Limits[m.folder])
	return t, nil
}

// judge compares the figures with the shares and with the package's own limits.
func (t *tally) judge(limit mutantLimit) {
	most := max(limit.Lived, (t.killed+t.lived)*(100-leastKilled)/100)
	if t.lived > most {
		t.failures = append(t.failures, fmt.Sprintf("%d mutants lived: at most %d may", t.lived, most))
	}
	all := t.killed + t.lived + t.notCovered
	mostMissed := max(limit.NotCovered, all*mostNotCovered/100)
	if t.notCovered > mostMissed {
		t.failures = append(t.failures, fmt.Sprintf("%d mutants are in lines that no test reaches: at most %d may be", t.notCovered, mostMissed))
	}
	if limit.Lived > t.lived || limit.NotCovered > t.notCovered {
		t.notes = append(t.notes, fmt.Sprintf("lower its limits in build/mutants.json to %d lived and %d not covered", t.lived, t.notCovered))
	}
}

// printMutants prints what a person looks at: what lived, came to no end or was not reached.
func printMutants(output io.Writer, t tally) {
	for _, line := range t.reviewed {
		fmt.Fprintln(output, line)
	}
}

// printTallies prints a line for each package and one for all. It returns an error that
// names the packages beyond their limits.
func printTallies(output io.Writer, tallies []tally) (failed error) {
	const row = "%-22s %7v %6v %12v %10v %11v  %s\n"
	fmt.Fprintf(output, "\n"+row, "package", "killed", "lived", "not covered", "timed out", "equivalent", "")
	sum := tally{folder: "all"}
	for _, t := range tallies {
		fmt.Fprintf(output, row, t.folder, t.killed, t.lived, t.notCovered, t.timedOut, t.equivalent, strings.Join(append(t.failures, t.notes...), "; "))
		sum.killed, sum.lived, sum.notCovered = sum.killed+t.killed, sum.lived+t.lived, sum.notCovered+t.notCovered
		sum.timedOut, sum.equivalent = sum.timedOut+t.timedOut, sum.equivalent+t.equivalent
		for _, failure := range t.failures {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", t.folder, failure))
		}
	}
	share := ""
	if ran := sum.killed + sum.lived; ran > 0 {
		share = fmt.Sprintf("%.1f %% of those that ran were killed, %.1f %% are not covered",
			100*float64(sum.killed)/float64(ran), 100*float64(sum.notCovered)/float64(ran+sum.notCovered))
	}
	fmt.Fprintf(output, row, sum.folder, sum.killed, sum.lived, sum.notCovered, sum.timedOut, sum.equivalent, share)
	return failed
}

// staleEquivalents returns a sentence for each entry whose line is no longer in its
// function, or that has no kind or reason.
func staleEquivalents(root string, known []equivalentMutant) (problems []string) {
	for _, e := range known {
		source, err := readMutatedSource(filepath.Join(root, filepath.FromSlash(e.File)))
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case !source.holds(e.Function, e.Line):
			problems = append(problems, fmt.Sprintf("%s: %s has no line %q: take it out of build/mutants.json", e.File, e.Function, e.Line))
		case e.Kind == "" || strings.TrimSpace(e.Reason) == "":
			problems = append(problems, fmt.Sprintf("%s: the mutant in %s has no kind or no reason", e.File, e.Function))
		}
	}
	return problems
}

// mutatedSource is a Go file whose lines and functions are looked up.
type mutatedSource struct {
	lines     []string
	functions []sourceFunction
}

type sourceFunction struct {
	name        string
	first, last int // lines, from 1
}

// readMutatedSource reads a Go file.
func readMutatedSource(file string) (*mutatedSource, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &mutatedSource{lines: strings.Split(string(text), "\n")}
	for _, declared := range parsed.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok {
			s.functions = append(s.functions, sourceFunction{functionName(function), set.Position(function.Pos()).Line, set.Position(function.End()).Line})
		}
	}
	return s, nil
}

// at returns the function around a line, or "" outside of one, and the line's text.
func (s *mutatedSource) at(line int) (function, text string) {
	for _, f := range s.functions {
		if f.first <= line && line <= f.last {
			function = f.name
		}
	}
	if line >= 1 && line <= len(s.lines) {
		text = strings.TrimSpace(s.lines[line-1])
	}
	return function, text
}

// holds reports whether a line of a function has a text.
func (s *mutatedSource) holds(function, text string) bool {
	for i := range s.lines {
		if name, line := s.at(i + 1); name == function && line == text {
			return true
		}
	}
	return false
}

// functionName returns the name of a function, and of a method with its type: Rule.Matches.
func functionName(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}
	kind := function.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "." + function.Name.Name
	}
	return function.Name.Name
}
