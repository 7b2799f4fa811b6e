package rule

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

var noon = time.UnixMilli(1_800_000_000_000)

// command is what claude asks in /src/api.
func command(text string) Request {
	return Request{Agent: bridge.Claude, Kind: "command", Tool: "Bash", Detail: text, Folder: "/src/api"}
}

func made(t *testing.T, request Request, wish Wish) Rule {
	t.Helper()
	rule, err := New("rule-1", request, wish, noon)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestNED_04_WhatAPrefixAllows(t *testing.T) {
	rule := made(t, command("go test ./backend/x"), Wish{Match: Prefix, Words: []string{"go", "test"}, Folder: "this"})
	for text, allowed := range map[string]bool{
		"go test":                       true,
		"go test ./backend/x":           true,
		"go test ./...":                 true,
		"go  test ./a  ./b":             true,
		"go test /src/api/backend":      true,
		"go testing":                    false, // words are whole
		"go test2 x":                    false,
		"go":                            false,
		"go vet ./...":                  false,
		"GO test x":                     false,
		"xgo test x":                    false,
		"go test; rm -rf /":             false,
		"go test && rm x":               false,
		"go test || rm x":               false,
		"go test | sh":                  false,
		"go test & rm x":                false,
		"go test $(rm x)":               false,
		"go test `rm x`":                false,
		"go test ${IFS}x":               false,
		"go test $HOME":                 false,
		"go test > /etc/passwd":         false,
		"go test >x":                    false,
		"go test < x":                   false,
		"go test <(rm x)":               false,
		"go test\nrm x":                 false,
		"go test\rrm x":                 false,
		"go test\trm":                   false,
		"go test \x00rm":                false,
		"go test 'a b'":                 false,
		`go test "a"`:                   false,
		`go test a\ b`:                  false,
		"go test ~/x":                   false,
		"go test *":                     false,
		"go test x?":                    false,
		"go test [a]":                   false,
		"go test {a,b}":                 false,
		"go test !x":                    false,
		"go test # x":                   false,
		"go test (x)":                   false,
		"go test -exec=rm ./...":        false, // an option was not spelled out
		"go test -exec rm ./...":        false,
		"go test --anything":            false,
		"go test GOFLAGS=x":             false,
		"go test ../other":              false,
		"go test a/../../x":             false,
		"go test /etc":                  false,
		"go test a:/etc/x":              false,
		"go test a,../x":                false,
		"go test /src/api2":             false,
		"go test /src/api/../x":         false,
		"go test https://example.com/x": false,
		"go test git@host:x":            false,
		"go test \u00a0x":               false,
		"go test ; x":                   false, // a Greek question mark is none of ours
		"GOFLAGS=-exec=rm go test":      false,
		"go test ./x \u2028 rm":         false,
		"go test ./x install":           false, // a word of the program's that reaches out
	} {
		if got := rule.Allows(command(text), noon); got != allowed {
			t.Errorf("%q: allowed = %v, want %v", text, got, allowed)
		}
	}
}

func TestNED_04_NoPrefixForWhatReachesOutOrTakesAway(t *testing.T) {
	for _, text := range []string{
		"rm -rf build", "/bin/rm x y", "RM x y", "rm.exe x y", "rmdir a b", "git push origin main", "git clean -fd", "git reset --hard", "git checkout x y", "git rm x",
		"curl example.com x", "wget a b", "ssh host ls", "scp a b", "npm install x", "npm publish x", "pip3 install x", "python3 x.py y", "bash x.sh y", "sh -c x", "env rm x", "sudo rm x",
		"xargs rm x", "find . x", "sed -i x", "nohup rm x", "time rm x", "docker run x", "kubectl delete x", "chmod 777 x", "mv a b", "dd a b", "kill 1 2", "tee a b", "go run ./x", "go get x",
		"cargo install x", "make clean x", "touch ../x y", "cp a /etc/x", "ls --out=/etc/x y", "ls -I/etc y", ". ./x y", "if x y", "A=b go test", "=x go", "npx x y", "node x y", "mkfs.ext4 x y",
		"go", "ls", // the name of a program alone
	} {
		words := strings.Fields(text)
		for n := 1; n <= len(words); n++ {
			if rule, err := New("rule-1", command(text), Wish{Match: Prefix, Words: words[:n], Folder: "this"}, noon); err == nil {
				t.Errorf("%q: a prefix of %d words was made: %s", text, n, rule.Sentence())
			}
		}
		exact, err := New("rule-1", command(text), Wish{Match: Exact, Folder: "this"}, noon)
		if err != nil || !exact.Allows(command(text), noon) {
			t.Errorf("%q spelled out whole: %v", text, err)
		}
		if exact.Allows(command(text+" x"), noon) || exact.Allows(command(" "+text), noon) {
			t.Errorf("%q allows more than itself", text)
		}
	}
}

func TestNED_04_ARuleIsAboutAllThatItNames(t *testing.T) {
	wish := Wish{Match: Exact, Folder: "this", Until: noon.Add(time.Hour).UnixMilli()}
	request := command("make check")
	request.Cwd = "/src/api/sub"
	rule := made(t, request, wish)
	change := func(by func(*Request)) Request {
		other := request
		by(&other)
		return other
	}
	for name, other := range map[string]Request{
		"another agent":   change(func(q *Request) { q.Agent = bridge.Codex }),
		"another kind":    change(func(q *Request) { q.Kind = "tool" }),
		"another tool":    change(func(q *Request) { q.Tool = "PowerShell" }),
		"another folder":  change(func(q *Request) { q.Folder = "/src/web" }),
		"the folder's":    change(func(q *Request) { q.Folder = "/src/api/sub" }),
		"another place":   change(func(q *Request) { q.Cwd = "/src/api" }),
		"another command": change(func(q *Request) { q.Detail = "make check2" }),
	} {
		if rule.Allows(other, noon) {
			t.Errorf("%s is allowed", name)
		}
	}
	if !rule.Allows(request, noon) || !rule.Allows(request, noon.Add(time.Hour-time.Millisecond)) || rule.Allows(request, noon.Add(time.Hour)) {
		t.Error("it holds up to its time, and no longer")
	}
	taken := rule
	taken.TakenBack = job.MillisOf(noon)
	if taken.Allows(request, noon) {
		t.Error("a rule that was taken back allows")
	}
	edit := Request{Agent: bridge.Claude, Kind: "edit", Tool: "Write", Detail: "/src/a\n{}", Folder: "/src"}
	tool := edit
	tool.Kind = "tool"
	if rule := made(t, edit, Wish{Match: Exact, Folder: "this"}); !rule.Allows(edit, noon) || rule.Allows(tool, noon) {
		t.Error("a rule is about one kind of request")
	}
	everywhere := made(t, request, Wish{Match: Exact, Folder: "all"})
	if other := change(func(q *Request) { q.Folder, q.Cwd = "/src/web", "/src/web" }); !everywhere.Allows(other, noon) {
		t.Error("a rule for all folders does not allow in another")
	}
}

func TestNED_04_NoRuleIsKeyedOnAToolsNameAlone(t *testing.T) {
	for name, q := range map[string]Request{
		"nothing but the name":         {Agent: bridge.Claude, Kind: "tool", Tool: "WebFetch", Folder: "/src"},
		"a path without what goes in":  {Agent: bridge.Claude, Kind: "edit", Tool: "Write", Detail: "/src/a.go", Folder: "/src"},
		"a title":                      {Agent: bridge.Codex, Kind: "tool", Tool: "linear", Detail: "Create an issue?", Folder: "/src"},
		"a question":                   {Agent: bridge.Claude, Kind: "choice", Tool: "AskUserQuestion", Detail: "a\nWhich? [x | y]", Folder: "/src"},
		"no kind":                      {Agent: bridge.Claude, Tool: "Bash", Detail: "ls a", Folder: "/src"},
		"an agent of unknown words":    {Agent: job.ACP, Kind: "command", Tool: "execute", Detail: "ls a", Folder: "/src"},
		"no agent":                     {Kind: "command", Tool: "Bash", Detail: "ls a", Folder: "/src"},
		"a pattern in place of itself": {Agent: bridge.OpenCode, Kind: "command", Tool: "bash", Detail: "git log *", Folder: "/src"},
	} {
		for _, match := range []Match{Exact, Prefix} {
			if rule, err := New("rule-1", q, Wish{Match: match, Words: strings.Fields(q.Detail), Folder: "all"}, noon); err == nil {
				t.Errorf("%s, %s: %+v", name, match, rule)
			}
		}
		if (Rule{Agent: q.Agent, Kind: q.Kind, Tool: q.Tool, Match: Exact, Text: q.Detail}).Allows(q, noon) {
			t.Errorf("%s: a rule that was written by hand allows it", name)
		}
		if offer := OfferFor(q); offer.Exact || offer.Why == "" || len(offer.Words) > 0 {
			t.Errorf("%s is offered: %+v", name, offer)
		}
	}
	fetch := Request{Agent: bridge.Claude, Kind: "tool", Tool: "WebFetch", Detail: `{"url":"https://example.com/a"}`, Folder: "/src"}
	rule := made(t, fetch, Wish{Match: Exact, Folder: "this"})
	other := fetch
	other.Detail = `{"url":"https://example.com/b"}`
	if !rule.Allows(fetch, noon) || rule.Allows(other, noon) {
		t.Error("a tool's rule is about its arguments")
	}
}

func TestNED_04_NoPrefixWhereNothingHoldsTheCommand(t *testing.T) {
	plain := command("go test ./x")
	for name, change := range map[string]func(*Request){
		"a folder elsewhere":  func(q *Request) { q.Cwd = "/etc" },
		"a folder above":      func(q *Request) { q.Cwd = "/src" },
		"a way out":           func(q *Request) { q.Cwd = "/src/api/../web" },
		"another shell":       func(q *Request) { q.Tool = "PowerShell" },
		"outside the sandbox": func(q *Request) { q.Tool = "shell, outside the sandbox" },
		"no command":          func(q *Request) { q.Kind, q.Detail = "tool", "go test\n./x" },
	} {
		q := plain
		change(&q)
		wish := Wish{Match: Prefix, Words: []string{"go", "test"}, Folder: "this"}
		if _, err := New("rule-1", q, wish, noon); err == nil {
			t.Errorf("%s: a prefix was made", name)
		}
		byHand := Rule{Agent: q.Agent, Kind: q.Kind, Tool: q.Tool, Match: Prefix, Words: wish.Words, Folder: q.Folder}
		if byHand.Allows(q, noon) {
			t.Errorf("%s: a prefix allows it", name)
		}
		if offer := OfferFor(q); len(offer.Words) > 0 || offer.Why == "" || !offer.Exact {
			t.Errorf("%s is offered: %+v", name, offer)
		}
	}
	inside := plain
	inside.Place, inside.Cwd = "/trees/api-job", "/trees/api-job/sub" // a worktree of it
	made(t, inside, Wish{Match: Prefix, Words: []string{"go", "test"}, Folder: "this"})
}

func TestNED_04_WhatTheOwnerMayChoose(t *testing.T) {
	q := command("go test ./backend/x")
	for name, wish := range map[string]Wish{
		"no match":          {Folder: "this"},
		"another match":     {Match: "regex", Folder: "this"},
		"no folder":         {Match: Exact},
		"a path":            {Match: Exact, Folder: "/src"},
		"words of an exact": {Match: Exact, Folder: "this", Words: []string{"go", "test"}},
		"no words":          {Match: Prefix, Folder: "this"},
		"one word":          {Match: Prefix, Folder: "this", Words: []string{"go"}},
		"other words":       {Match: Prefix, Folder: "this", Words: []string{"go", "vet"}},
		"joined words":      {Match: Prefix, Folder: "this", Words: []string{"go test", "./backend/x"}},
		"an empty word":     {Match: Prefix, Folder: "this", Words: []string{"go", ""}},
		"too many":          {Match: Prefix, Folder: "this", Words: []string{"go", "test", "./backend/x", "y"}},
		"a time gone by":    {Match: Exact, Folder: "this", Until: noon.UnixMilli()},
		"two years":         {Match: Exact, Folder: "this", Until: noon.AddDate(2, 0, 0).UnixMilli()},
	} {
		if _, err := New("rule-1", q, wish, noon); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A prefix that leaves an option open would not allow what is asked.
	if _, err := New("rule-1", command("go test -race ./x"), Wish{Match: Prefix, Words: []string{"go", "test"}, Folder: "this"}, noon); err == nil {
		t.Error("an option was left open")
	}
	offer := OfferFor(command("go test -race ./x ./y"))
	if !offer.Exact || offer.Least != 3 || len(offer.Words) != 5 {
		t.Errorf("offered: %+v", offer)
	}
	for n := offer.Least; n <= len(offer.Words); n++ {
		made(t, command("go test -race ./x ./y"), Wish{Match: Prefix, Words: offer.Words[:n], Folder: "this"})
	}
	q.Folder = ""
	if _, err := New("rule-1", q, Wish{Match: Exact, Folder: "this"}, noon); err == nil {
		t.Error("this folder is not known, and a rule was made")
	}
}

// TestNED_04_NoShellRunsMoreThanThePrefix draws commands out of everything that shells
// know and has a real shell say what it would run: whatever the rule allows is one
// command, whose first words are those that the owner saw.
func TestNED_04_NoShellRunsMoreThanThePrefix(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell")
	}
	rule := made(t, command("show me x"), Wish{Match: Prefix, Words: []string{"show", "me"}, Folder: "this"})
	pieces := []string{
		"show", "me", "x", "./a", "..", "/", "/etc", "-n", "rm", ";", "&", "&&", "|", "||", "$(", ")", "`", ">", "<", "\n", "\r", "\t", " ", "  ", "'", `"`, `\`, "$", "${", "}", "{", "*", "?", "[", "]",
		"#", "!", "~", "=", "^", "%", "(", "@", ":", ",", "+", "\x00", "\u00a0", "\u2003", "\uff1b", "é", "a=b", "<<", "if", "then", "fi", "eval", "1>", "2>&1",
	}
	allowed := 0
	rapid.Check(t, func(rt *rapid.T) {
		tail := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(rt, "tail"), "")
		text := "show me" + rapid.SampledFrom([]string{" ", "", "  "}).Draw(rt, "gap") + tail
		if !rule.Allows(command(text), noon) {
			return
		}
		allowed++
		// The shell is given a function in place of the program: it prints its words.
		run := exec.Command(shell, "-c", "show() { printf 'ran\\n'; printf '%s\\n' \"$@\"; }\n"+text)
		run.Dir, run.Env = t.TempDir(), []string{"PATH=/nonexistent"}
		out, err := run.CombinedOutput()
		want := "ran\n" + strings.Join(strings.Fields(text)[1:], "\n") + "\n"
		if err != nil || string(out) != want {
			rt.Fatalf("%q is allowed, and the shell runs %q, %v; want %q", text, out, err, want)
		}
	})
	if allowed == 0 {
		t.Fatal("nothing was allowed: the test shows nothing")
	}
	t.Log("allowed:", allowed)
}

func FuzzNED_04_APrefixAllowsPlainWordsOnly(f *testing.F) {
	for _, seed := range []string{"show me x", "show me; rm x", "show me $(x)", "show me\nx", "show me \"a\"", "show me ../x", "show\u00a0me x"} {
		f.Add(seed)
	}
	rule := Rule{Agent: bridge.Claude, Kind: "command", Tool: "Bash", Match: Prefix, Words: []string{"show", "me"}, Folder: "/src/api"}
	f.Fuzz(func(t *testing.T, text string) {
		if !rule.Allows(command(text), noon) {
			return
		}
		if strings.ContainsAny(text, ";&|$`><\n\r\t'\"\\*?[]{}()#!~%^\x00") || strings.Contains(text, "..") && slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" /:,", r) }), "..") {
			t.Errorf("%q is allowed", text)
		}
		if words := strings.Fields(text); len(words) < 2 || words[0] != "show" || words[1] != "me" {
			t.Errorf("%q is allowed", text)
		}
	})
}

// Codex hands a command to a shell by its whole line, which is what its owner sees: from
// now on is exactly that line, and no other shell or command within one.
func TestNED_04_ACommandInAShellsLineIsAllowedAsItWasSeen(t *testing.T) {
	request := func(detail string) Request {
		return Request{Agent: bridge.Codex, Kind: "command", Tool: "shell", Detail: detail, Cwd: "/src", Folder: "/src"}
	}
	at := time.UnixMilli(1_800_000_000_000)
	const line = `/bin/bash -lc 'go test ./api'`
	if offer := OfferFor(request(line)); !offer.Exact || len(offer.Words) != 0 {
		t.Errorf("offered: %+v, want the whole line alone", offer)
	}
	rule, err := New("rule-1", request(line), Wish{Match: Exact, Folder: "this"}, at)
	if err != nil {
		t.Fatal(err)
	}
	for detail, want := range map[string]bool{
		line: true, `/bin/sh -lc 'go test ./api'`: false, `go test ./api`: false, `/bin/bash -lc 'go test ./api; rm x'`: false, `/bin/bash -lc "go test ./api"`: false, line + " ": false,
	} {
		if got := rule.Allows(request(detail), at); got != want {
			t.Errorf("%s: allowed is %t", detail, got)
		}
	}
	if _, err := New("rule-2", request(line), Wish{Match: Prefix, Words: []string{"/bin/bash", "-lc"}, Folder: "this"}, at); err == nil {
		t.Error("any command of a shell is allowed by its first words")
	}
}

func TestNED_04_ThePrefixHasTwentyWordsAndTheEndAYearAtMost(t *testing.T) {
	long := "go test" + strings.Repeat(" ./x", 20)
	for _, tt := range []struct {
		name string
		wish Wish
		made bool
	}{
		{"twenty words", Wish{Match: Prefix, Words: strings.Fields(long)[:20], Folder: "this"}, true},
		{"one more", Wish{Match: Prefix, Words: strings.Fields(long)[:21], Folder: "this"}, false},
		{"366 days", Wish{Match: Exact, Folder: "this", Until: noon.AddDate(0, 0, 366).UnixMilli()}, true},
		{"a millisecond more", Wish{Match: Exact, Folder: "this", Until: noon.AddDate(0, 0, 366).UnixMilli() + 1}, false},
	} {
		if rule, err := New("rule-1", command(long), tt.wish, noon); (err == nil) != tt.made {
			t.Errorf("%s: %+v, %v", tt.name, rule, err)
		}
	}
}

func TestNED_04_OperandsAreTheWordsThatNobodySpelledOut(t *testing.T) {
	prefix := Rule{Match: Prefix, Words: []string{"go", "test"}}
	for _, tt := range []struct {
		name string
		rule Rule
		text string
		want []string
	}{
		{"two", prefix, "go test ./a ./b", []string{"./a", "./b"}},
		{"none", prefix, "go test", []string{}},
		{"fewer words than the rule", Rule{Match: Prefix, Words: []string{"go", "test", "./a"}}, "go test", nil},
		{"an exact rule", Rule{Match: Exact, Words: []string{"go", "test"}}, "go test ./a", nil},
		{"no plain command", prefix, "go test ./a; ls", nil},
	} {
		if got := tt.rule.Operands(command(tt.text)); !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNED_04_ARuleIsSpelledOut(t *testing.T) {
	until := job.MillisOf(time.Date(2026, 12, 24, 18, 30, 0, 0, time.Local))
	rules := []Rule{
		{ID: "rule-1", Agent: bridge.Claude, Kind: "command", Match: Prefix, Words: []string{"go", "test"}, Folder: "/src/api", Uses: 1, LastFor: "jobs/02", Until: until},
		{ID: "rule-2", Agent: bridge.Codex, Kind: "command", Match: Exact, Text: "make all"},
		{ID: "rule-3", Agent: bridge.Claude, Kind: "edit", Tool: "Write", Match: Exact, Text: "{}", Folder: "/src", Uses: 2},
		{ID: "rule-4", Agent: bridge.Claude, Kind: "tool", Match: Exact, Text: "{}"},
	}
	const want = `rule-1  claude: commands that begin with "go test", in /src/api
  used 1 time, last for jobs/02; until 2026-12-24 18:30
rule-2  codex: exactly the command "make all", in every folder
  used 0 times
rule-3  claude: exactly this use of Write, in /src
  used 2 times
rule-4  claude: exactly this use of the tool, in every folder
  used 0 times
`
	if got := Text(rules); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Text(nil); got != "No rules. You are asked every time.\n" {
		t.Errorf("without rules: %q", got)
	}
}

func TestNED_04_ThePrefixLeavesTwoWordsAtLeast(t *testing.T) {
	for text, least := range map[string]int{"cat ./a": 2, "cat ./a ./b": 2, "go test -race ./a": 3} {
		if offer := OfferFor(command(text)); offer.Least != least || !offer.Exact {
			t.Errorf("%q: %+v, want %d words at least", text, offer, least)
		}
	}
}
