package maintenance

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/prove"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/testing/testkit"
)

// child writes a shell script that stands for `bridge prove`, and returns its path.
func child(t *testing.T, script string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tries agents")
	}
	path := filepath.Join(t.TempDir(), "child")
	if err := testkit.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func environ() []string { return []string{"PATH=" + os.Getenv("PATH"), "COLOUR=blue"} }

func TestCAN_02_TheChildsReportIsTheProof(t *testing.T) {
	const codex = `{"ok":false,"agents":[{"kind":"claude","version":"9"},{"kind":"codex","version":"0.171.0","routes":[{"route":"wake","state":"broken","step":"wake","expected":"a turn","got":"nothing"}]}]}`
	program := child(t, `[ "$COLOUR" = blue ] && [ "$*" = "prove codex" ] || { echo "wrong start: $COLOUR $*" >&2; exit 9; }
echo "a line of the progress" >&2
echo '`+codex+`'
exit 1`)
	got, err := proveChild(t.Context(), bridge.Codex, environ(), program, "prove", "codex")
	if err != nil || got.Kind != bridge.Codex || got.Version != "0.171.0" || len(got.Broken()) != 1 || got.Broken()[0].Got != "nothing" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCAN_02_AChildIsAtTheLowestPriority(t *testing.T) {
	program := child(t, `nice >&2`)
	_, err := proveChild(t.Context(), bridge.Codex, environ(), program)
	if err == nil || err.Error() != "19" {
		t.Errorf("its priority is %v", err)
	}
}

func TestCAN_02_WhyAChildTriedNothing(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"an error as JSON":      {`echo '{"ok":false,"error":"codex is not on PATH"}'; echo other >&2; exit 1`, "codex is not on PATH"},
		"an error in words":     {`echo first >&2; echo "bridge: no network namespace" >&2; exit 3`, "bridge: no network namespace"},
		"another kind":          {`echo '{"ok":true,"agents":[{"kind":"claude","version":"1"}]}'`, "it printed no result"},
		"nothing":               {`exit 0`, "it printed no result"},
		"nothing and a bad end": {`exit 7`, "exit status 7"},
		"half of a document":    {`echo '{"ok":true,"agents":[{"kind":"codex"'; exit 1`, "exit status 1"},
		"ended by a signal":     {`kill -KILL $$`, "signal: killed"},
		"no such program":       {``, "missing"},
	} {
		program := child(t, tt.script)
		if name == "no such program" {
			program = filepath.Join(filepath.Dir(program), "missing")
		}
		got, err := proveChild(t.Context(), bridge.Codex, environ(), program)
		if bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), tt.want) || got.Version != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestCAN_02_AChildThatIsToldToEndMayTidyUp(t *testing.T) {
	folder := t.TempDir()
	ready, tidied := filepath.Join(folder, "ready"), filepath.Join(folder, "tidied")
	program := child(t, `trap 'echo done > `+tidied+`; exit 1' TERM
mkfifo `+filepath.Join(folder, "wait")+`
echo > `+ready+`
while :; do read line < `+filepath.Join(folder, "wait")+`; done`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := proveChild(ctx, bridge.Codex, environ(), program)
		ended <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before: %v", err)
		case <-tick.C:
		}
	}
	cancel()
	if err := <-ended; bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(tidied); err != nil {
		t.Errorf("it was killed before it could tidy up: %v", err)
	}
}

func TestCAN_02_AReportBecomesAProof(t *testing.T) {
	report := proofOf(prove.Report{
		Kind: bridge.Codex, Version: "0.171.0", Routes: []prove.Result{{Route: prove.Connects, State: prove.Works}, {Route: prove.Wake, State: prove.Broken}},
	})
	if report.Kind != bridge.Codex || report.Version != "0.171.0" || report.Problem != "" || len(report.Broken()) != 1 || report.Broken()[0].Route != proof.Wake {
		t.Errorf("%+v", report)
	}
}
