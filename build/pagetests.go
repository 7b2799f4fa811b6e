package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/testing/testkit"
)

// vitest runs the page's own tests and notes those that failed.
func (p project) vitest(ctx context.Context) error {
	var report vitestReport
	s := step{dir: "frontend", name: "npm", args: []string{"run", "test"}}
	err := p.reported(ctx, s, func(file string) step {
		s.args = append(slices.Clone(s.args), "--", "--reporter=default", "--reporter=json", "--outputFile.json="+file)
		return s
	}, &report)
	for _, f := range report.failures(p.at("frontend")) {
		p.fail(f)
	}
	return err
}

// playwright drives the page in a browser. Tests that failed are tried again when the
// others are done, each by itself and at most twice.
func (p project) playwright(ctx context.Context, env []string) error {
	if p.long {
		env = append(env, testkit.Env+"=1")
	}
	begin := p.failures()
	report, err := p.playwrightOnce(ctx, step{dir: "frontend", env: env, name: "npx", args: []string{"playwright", "test"}})
	for _, f := range report.failures(env) {
		p.fail(f)
	}
	return p.retryFailed(ctx, err, begin, 2, func(p project, f failure) error {
		report, err := p.playwrightOnce(ctx, f.alone)
		if err == nil && report.Stats.Expected == 0 { // skipped
			return errors.New("it did not run")
		}
		return err
	})
}

func (p project) playwrightOnce(ctx context.Context, s step) (report playwrightReport, err error) {
	err = p.reported(ctx, s, func(file string) step {
		s.args = append(slices.Clone(s.args), "--retries=0", "--reporter=list,json")
		s.env = append(slices.Clone(s.env), "PLAYWRIGHT_JSON_OUTPUT_FILE="+file)
		return s
	}, &report)
	return report, err
}

// reported runs a step that writes a report in JSON to the file it is told, and reads
// that. Where the step fails there need not be one.
func (p project) reported(ctx context.Context, s step, withReport func(file string) step, report any) error {
	folder, err := os.MkdirTemp("", "bridge-report-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "report.json")
	failed := p.do(ctx, withReport(file))
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, report)
	}
	if failed == nil && err != nil {
		return fmt.Errorf("the report of %s: %w", s, err)
	}
	return failed
}

// vitestReport is what vitest's JSON reporter writes, as far as it is read here.
type vitestReport struct {
	TestResults []struct {
		Name, Status, Message string
		AssertionResults      []struct {
			FullName, Status string
			FailureMessages  []string
		}
	}
}

func (r vitestReport) failures(folder string) (all []failure) {
	for _, file := range r.TestResults {
		name, err := filepath.Rel(folder, file.Name)
		if err != nil {
			name = file.Name
		}
		name = filepath.ToSlash(name)
		noted := len(all)
		for _, test := range file.AssertionResults {
			if test.Status == "failed" {
				alone := step{dir: "frontend", name: "npx", args: []string{"vitest", "run", name, "-t", "^" + regexp.QuoteMeta(test.FullName) + "$"}}
				all = append(all, failure{test: name + " " + test.FullName, output: brief(withoutLibraries(test.FailureMessages)), alone: alone, final: true})
			}
		}
		if file.Status == "failed" && len(all) == noted {
			alone := step{dir: "frontend", name: "npx", args: []string{"vitest", "run", name}}
			all = append(all, failure{test: name, output: brief([]string{file.Message}), alone: alone, final: true})
		}
	}
	return all
}

// playwrightReport is what Playwright's JSON reporter writes, as far as it is read
// here.
type playwrightReport struct {
	Suites []playwrightSuite
	Errors []playwrightError
	Stats  struct{ Expected int }
}

type playwrightSuite struct {
	Title  string
	Suites []playwrightSuite
	Specs  []struct {
		Title, File string
		Line        int
		Tests       []struct {
			Status  string
			Results []struct{ Errors []playwrightError }
		}
	}
}

type playwrightError struct{ Message string }

func (r playwrightReport) failures(env []string) (all []failure) {
	for _, e := range r.Errors { // outside of a test, such as a file that cannot be read
		alone := step{dir: "frontend", env: env, name: "npx", args: []string{"playwright", "test"}}
		all = append(all, failure{output: brief([]string{plain(e.Message)}), alone: alone, final: true})
	}
	var walk func(suites []playwrightSuite, titles []string)
	walk = func(suites []playwrightSuite, titles []string) {
		for _, suite := range suites {
			titles := append(slices.Clone(titles), suite.Title)
			for _, spec := range suite.Specs {
				for _, test := range spec.Tests {
					if test.Status != "unexpected" {
						continue
					}
					var lines []string
					for _, result := range test.Results {
						for _, e := range result.Errors {
							lines = append(lines, plain(e.Message)+"\n")
						}
					}
					place := fmt.Sprintf("e2e/%s:%d", spec.File, spec.Line)
					name := strings.Join(append(titles[1:], spec.Title), " › ") // the first title is the file
					all = append(all, failure{
						test: place + " " + name, output: brief(lines), final: pagePromises.MatchString(name),
						alone: step{dir: "frontend", env: env, name: "npx", args: []string{"playwright", "test", "--workers=1", place}},
					})
				}
			}
			walk(suite.Suites, titles)
		}
	}
	walk(r.Suites, nil)
	return all
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// plain is a text without the colours of a terminal.
func plain(text string) string { return colours.ReplaceAllString(text, "") }

// withoutLibraries leaves out of what a test said the places in code that is not ours.
func withoutLibraries(lines []string) []string {
	return slices.DeleteFunc(slices.Collect(strings.Lines(strings.Join(lines, ""))), func(line string) bool {
		return strings.Contains(line, "/node_modules/") || strings.Contains(line, "at new Promise (<anonymous>)")
	})
}
