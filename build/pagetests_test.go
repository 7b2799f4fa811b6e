package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/testing/testkit"
)

// The reports in testdata were written by vitest and Playwright, of tests made to
// fail; parts that are not read are left out.
func TestReportsOfThePagesTestsNameWhatFailed(t *testing.T) {
	read := func(name string, report any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err := errors.Join(err, json.Unmarshal(text, report)); err != nil {
			t.Fatal(err)
		}
	}
	told := func(all []failure) (lines []string) {
		for _, f := range all {
			lines = append(lines, f.test, f.output, f.alone.String(), fmt.Sprint(f.final))
		}
		return lines
	}
	var units vitestReport
	read("vitest.json", &units)
	want := []string{
		"src/names.test.ts", `Failed to resolve import "./nothing.js" from "src/names.test.ts". Does the file exist?`,
		"cd frontend && npx vitest run src/names.test.ts", "true",
		"src/sizes.test.ts a part (x) fails", "AssertionError: expected 1 to be 2 // Object.is equality\nat /checkout/frontend/src/sizes.test.ts:2:62",
		`cd frontend && npx vitest run src/sizes.test.ts -t '^a part \(x\) fails$'`, "true",
	}
	if diff := cmp.Diff(want, told(units.failures("/checkout/frontend"))); diff != "" {
		t.Error(diff)
	}
	var browser playwrightReport
	read("playwright.json", &browser)
	got := told(browser.failures([]string{"BRIDGE_BIN=/a b"}))
	if len(got) == 4 {
		got[1], _, _ = strings.Cut(got[1], "\n")
	}
	want = []string{
		"e2e/sizes.spec.ts:3 a part (x) › fails", "Error: expect(received).toBe(expected) // Object.is equality",
		"cd frontend && BRIDGE_BIN='/a b' npx playwright test --workers=1 e2e/sizes.spec.ts:3", "false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for title, final := range map[string]bool{
		"DSK-06 a killed broker is told, and the page comes back": true, "away mode: a broker that dies leaves it to the terminal": true,
		"a question reaches its session once": true, "a message is lost": true, "nothing comes twice": true, "the store is restored": true,
		"50 prompts at once are in order": false, "a link comes up once both want it": false, "the skilled reader": false, "notices are closed": false,
	} {
		browser.Suites[0].Suites[0].Specs[0].Title = title
		if all := browser.failures(nil); len(all) != 1 || all[0].final != final {
			t.Errorf("%q fails: final %v", title, !final)
		}
	}
	outside := playwrightReport{Errors: []playwrightError{{"\x1b[31mNo tests\x1b[39m found"}}}.failures(nil)
	if len(outside) != 1 || outside[0].output != "No tests found" || !outside[0].final {
		t.Errorf("an error outside of tests: %+v", outside)
	}
}

// A browser test that failed is tried again, as a Go test is.
func TestTheBrowserTakesASecondLook(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for npx is a shell script")
	}
	failed, err := os.ReadFile(filepath.Join("testdata", "playwright.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, then    string
		flaky, failed int
	}{
		{"passes then", `echo '{"stats":{"expected":1}}' >"$PLAYWRIGHT_JSON_OUTPUT_FILE"; exit 0`, 1, 0},
		{"is skipped then", `echo '{"stats":{"expected":0}}' >"$PLAYWRIGHT_JSON_OUTPUT_FILE"; exit 0`, 0, 1},
		{"fails then", `exit 1`, 0, 1},
		{"writes no report", `exit 0`, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--workers=1*) %s;; esac\ncat ../failed.json >\"$PLAYWRIGHT_JSON_OUTPUT_FILE\"\nexit 1\n", tt.then)
			if err := errors.Join(
				os.Mkdir(filepath.Join(root, "frontend"), 0o700), os.Mkdir(filepath.Join(root, "bin"), 0o700),
				os.WriteFile(filepath.Join(root, "failed.json"), failed, 0o600), testkit.WriteProgram(filepath.Join(root, "bin", "npx"), []byte(script), 0o700),
			); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(root, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
			p := project{root: root, output: io.Discard, notes: &notes{}}
			if err := p.playwright(t.Context(), nil); (err == nil) != (tt.failed == 0) {
				t.Errorf("playwright = %v", err)
			}
			if len(p.notes.flaky) != tt.flaky || len(p.notes.failures) != tt.failed {
				t.Errorf("flaky %v, failed %v", named(p.notes.flaky), named(p.notes.failures))
			}
		})
	}
}
