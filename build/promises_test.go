package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPRF_02_ThePageOfPromisesIsWhatTheTestsSay(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := runPromises(t.Context(), project{root: root, output: io.Discard}, []string{"-check"}); err != nil {
		t.Error(err)
	}
	found, err := findPromises(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, promise := range found {
		for _, row := range promise.rows {
			if letters, _, _ := strings.Cut(row, "-"); areas[letters] == "" {
				t.Errorf("%s of %s, in %s, belongs to no area: correct the name, or add the area", row, promise.test, promise.folder)
			}
		}
	}
}

func TestPRF_02_PromisesAreReadFromNames(t *testing.T) {
	for _, tt := range []struct {
		name, folder, file, text string
		want                     []promise
	}{
		{
			name: "functions", folder: "a", file: "a_test.go", text: `func TestMSG_06_OneComesOnce(t *testing.T) {}
			func FuzzMSG_11_STO_01_Settings(f *testing.F) {}
			func TestOther(t *testing.T) {}
			func TestMSG_6_Short(t *testing.T) {}
			func (s suite) TestMSG_07_Method(t *testing.T) {}
			func helpMSG_08_Nobody() {}`,
			want: []promise{{[]string{"MSG-06"}, "a", "OneComesOnce", true}, {[]string{"MSG-11", "STO-01"}, "a", "Settings", true}},
		},
		{
			name: "steps", folder: "a/b", file: "a_test.go", text: `func TestOther(t *testing.T) {
				t.Run("DEC-07 revises", nil)
				t.Run("DEC-08 "+name, nil)
				t.Errorf("DEC-09 is wrong: %v", 1)
				t.Log("about DEC-10")
			}
			func TestDEC_07_DEC_08_Both(t *testing.T) { t.Run("DEC-07 is known", nil); t.Run("DEC-08 DEC-11 adds", nil) }
			var table = []row{{"NED-04 NED-05 a | b_c of %s"}, {"NED-06: a message"}}
			func help(t *testing.T) { t.Run("JOB-01 "+name, nil) }`,
			want: []promise{
				{[]string{"DEC-07"}, "a/b", "revises", false},
				{[]string{"DEC-08"}, "a/b", "TestOther", true},
				{[]string{"DEC-07", "DEC-08"}, "a/b", "Both", true},
				{[]string{"DEC-11"}, "a/b", "adds", false},
				{[]string{"NED-04", "NED-05"}, "a/b", `a / b\_c of …`, false},
			},
		},
		{
			name: "the build's own", folder: "build", file: "a_test.go", text: `func TestPRF_02_Own(t *testing.T) { t.Run("MSG-06 data", nil) }`,
			want: []promise{{[]string{"PRF-02"}, "build", "Own", true}},
		},
		{
			name: "the page", folder: "frontend/e2e", file: "a.spec.ts", text: "test('DSK-06 it opens', f)\n" +
				"  dashboard(\"DSK-07 SEC-12 of ${place}\", f)\n// DSK-08 a comment\nexpect(x) // 'DSK-09 no'\n])('SEC-08 of %s', f)\nit.each([\n  'JOB-14 says',\n)\n",
			want: []promise{
				{[]string{"DSK-06"}, "frontend/e2e", "it opens", false},
				{[]string{"DSK-07", "SEC-12"}, "frontend/e2e", "of …", false},
				{[]string{"SEC-08"}, "frontend/e2e", "of …", false},
				{[]string{"JOB-14"}, "frontend/e2e", "says", false},
			},
		},
		{name: "no test", folder: "a", file: "a.go", text: `func TestMSG_06_OneComesOnce() {}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			text := tt.text
			if strings.HasSuffix(tt.file, ".go") {
				text = "package a\n\n" + text
			}
			write(t, root, map[string]string{
				tt.folder + "/" + tt.file: text, "node_modules/x.spec.ts": "test('DSK-01 no', f)", ".cache/a_test.go": "package a\n\nfunc TestMSG_01_No() {}\n",
			})
			got, err := findPromises(root)
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(tt.want, got, cmp.AllowUnexported(promise{})); difference != "" {
				t.Error(difference)
			}
		})
	}
}

func TestPRF_02_ThePageOfPromisesHasALineForARowAndAFolder(t *testing.T) {
	got := string(promisesPage([]promise{
		{[]string{"STO-01", "MSG-06"}, "b", "Both", true},
		{[]string{"MSG-06"}, "b", "a step", false},
		{[]string{"MSG-06"}, "a", "Other", true},
		{[]string{"MSG-06"}, "a", "Other", true},
		{[]string{"XYZ-01"}, "c", "New", true},
	}))
	want := promisesHead + `
## MSG: sessions and messages

| row | where | tests |
|---|---|---|
| MSG-06 | a | ` + "`Other`" + ` |
|  | b | ` + "`Both`" + `; a step |

## STO: storage and backups

| row | where | tests |
|---|---|---|
| STO-01 | b | ` + "`Both`" + ` |

## XYZ: other

| row | where | tests |
|---|---|---|
| XYZ-01 | c | ` + "`New`" + ` |
`
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

func TestPRF_02_AStalePageOfPromisesIsAFailure(t *testing.T) {
	p := project{root: t.TempDir(), output: io.Discard}
	write(t, p.root, map[string]string{"a/a_test.go": "package a\n\nfunc TestMSG_06_One() {}\n", "docs/other.md": ""})
	stale := func() bool {
		err := runPromises(t.Context(), p, []string{"-check"})
		return err != nil && strings.Contains(err.Error(), "go run ./build promises")
	}
	if !stale() {
		t.Error("without a page: no failure")
	}
	if err := runPromises(t.Context(), p, nil); err != nil || stale() {
		t.Errorf("when it was written: %v, stale %v", err, stale())
	}
	page, err := os.ReadFile(p.at("docs", "promises.md"))
	if err != nil || !strings.Contains(string(page), "| MSG-06 | a | `One` |") {
		t.Errorf("%v: %s", err, page)
	}
	write(t, p.root, map[string]string{"docs/promises.md": strings.ReplaceAll(string(page), "\n", "\r\n")})
	if stale() {
		t.Error("with line ends of Windows it is stale")
	}
	write(t, p.root, map[string]string{"a/b_test.go": "package a\n\nfunc TestMSG_06_Two() {}\n"})
	if !stale() {
		t.Error("with a new test it is not stale")
	}
	for _, args := range [][]string{{"-x"}, {"other"}} {
		if err := runPromises(t.Context(), p, args); !errors.As(err, new(badArgument)) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
