package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"bridge/backend/agent/driver/standin"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/doors/hook"
	"bridge/backend/doors/hubcli"
	mcpprogram "bridge/backend/doors/worker/mcp"
	"bridge/backend/doors/worker/runjob"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// TestMain makes the test binary the programs of the scripts: bridge itself, an
// MCP client, and a program that takes a socket and never answers.
func TestMain(m *testing.M) {
	programs := map[string]func(){
		"bridge": main,
		// The programs of cmd/bridge-hook, bridge-mcp and bridge-worker, beside bridge as every
		// package has them.
		"bridge-hook":   func() { os.Exit(hook.Main(version, time.Now)) },
		"bridge-mcp":    func() { os.Exit(mcpprogram.Main(version, time.Now)) },
		"bridge-worker": func() { os.Exit(runjob.Main(version, time.Now, nil)) },
		"bridge-hub":    func() { os.Exit(hubMain()) }, // that of cmd/bridge-hub
		"laterhub":      func() { exitWith(laterHub()) },
		"nats-server":   func() { exitWith(natsServer(os.Args[1], os.Args[2])) },
		"nats-key":      func() { exitWith(natsKey(os.Args[1])) },
		"nats-operator": func() { exitWith(natsOperator(os.Stdout, os.Args[1:]...)) },
		"session":       func() { exitWith(session(os.Args[1:], os.Stdout)) },
		"thanks":        func() { exitWith(thanks(os.Stdout)) }, // two sessions that thank each other
		"mute":          func() { exitWith(mute(os.Args[1])) },
		"worker":        func() { exitWith(writingWorker()) },
		// untold DATABASE fails while there is something to tell another PC of its messages.
		"untold": func() { exitWith(checkUntold(os.Args[1])) },
		// decided-by PC TOPIC...: such decisions come from that PC, while no broker runs.
		"decided-by": func() { exitWith(decidedBy(os.Args[1], os.Args[2:])) },
		// visit FILE: opens the launch link in that file, as a browser does.
		"visit":       func() { exitWith(openPage(os.Args[1], os.Stdout)) },
		"visithidden": func() { exitWith(openPageHidden(os.Args[1], os.Stdout)) },
		"scripted":    func() { standin.Run(os.Args[1:]) }, // an agent that does what its prompt says
		// hosted-by HOST: the broker of the home runs in such a process.
		"hosted-by": func() { exitWith(hostedBy(os.Args[1])) },
	}
	maps.Copy(programs, jobPrograms)
	testscript.Main(m, programs)
}

// checkUntold fails while a store has receipts that were not given to the other PC or its
// hub.
func checkUntold(path string) (err error) {
	store, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	count := 0
	err = store.QueryRow("SELECT count(*) FROM remote_inbox WHERE news > told").Scan(&count)
	if err == nil && count > 0 {
		err = fmt.Errorf("%d receipts are not told", count)
	}
	return err
}

// decidedBy stores a decision of a paired PC on each topic.
func decidedBy(pc string, topics []string) (err error) {
	db, err := store.Open(context.Background(), filepath.Join(os.Getenv("BRIDGE_HOME"), "bridge.db"), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var list []decision.Revision
	for i, topic := range topics {
		list = append(list, decision.Revision{
			ID: pc + "-" + topic, Topic: topic, Text: "As " + pc + " has it", Scope: decision.AllSessions(), CreatedAt: time.Now().UnixMilli() + int64(i),
			Author: bridge.Address{ID: pc + "/api", Name: pc + "/api", Agent: bridge.Codex},
		})
	}
	_, err = db.Remote().Import(context.Background(), list, pc+"-id")
	return err
}

func hubMain() int {
	app := &hubcli.App{Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: time.Now, Version: version}
	return app.Run(context.Background())
}

// jobPrograms are those for scripts about jobs, on the systems that have some.
var jobPrograms map[string]func()

func exitWith(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"await":     await,
			"one-json":  oneJSON,
			"within":    within,
			"term":      term,
			"endbroker": endBroker,
			"listing":   listing,
			"unchanged": unchanged,
			"job-named": jobNamed,
			"take":      take,
		},
	})
}

// setUp gives each script homes of its own, and ends the brokers that it left.
func setUp(env *testscript.Env) error {
	env.Setenv("HOME", filepath.Join(env.WorkDir, "user"))
	env.Setenv("BRIDGE_HOME", filepath.Join(env.WorkDir, "h"))
	env.Setenv("BRIDGE_PORT", "0")
	shell := filepath.Join(env.WorkDir, "login-shell") // else that of whoever runs this says where programs are
	env.Setenv("SHELL", shell)
	program, err := exec.LookPath("bridge-hook")
	if err != nil {
		return err
	}
	env.Setenv("PROGRAMS", filepath.Dir(program))
	env.Defer(func() { endBrokers(env.WorkDir) })
	says := "#!/bin/sh\nexport PATH='" + env.Getenv("PATH") + "'\nexec /bin/sh -c \"$4\"\n"
	return errors.Join(testkit.WriteProgram(shell, []byte(says), 0o700), os.MkdirAll(filepath.Join(env.WorkDir, "user"), 0o700)) //nolint:gosec // it is to be run
}

// endBrokers ends the background brokers of every home below dir.
func endBrokers(dir string) {
	tokens, err := filepath.Glob(filepath.Join(dir, "*", "token"))
	if err != nil {
		return
	}
	for _, token := range tokens {
		broker, err := brokerOf("--home", filepath.Dir(token))
		if err != nil {
			continue // none runs
		}
		if process, err := os.FindProcess(broker.PID); err == nil {
			_ = process.Kill() // it may just have ended
		}
	}
}

func hostedBy(host string) error {
	broker, err := brokerOf()
	if err == nil && broker.Host != host {
		return fmt.Errorf("the broker is hosted by %q", broker.Host)
	}
	return err
}

func brokerOf(flags ...string) (api.Status, error) {
	output, err := exec.Command("bridge", append([]string{"status", "--json"}, flags...)...).Output()
	if err != nil {
		return api.Status{}, err
	}
	var report struct{ Broker api.Status }
	return report.Broker, json.Unmarshal(output, &report)
}

// exits CODE COMMAND...: runs the command and checks its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// await CODE COMMAND...: repeats the command until it exits with that code.
func await(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	deadline := time.Now().Add(testkit.Patience)
	for {
		got := exitCode(ts.Exec(args[1], args[2:]...))
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: still exit code %d, want %d", strings.Join(args[1:], " "), got, want)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// one-json: standard output of the last command was exactly one JSON document.
func oneJSON(ts *testscript.TestScript, _ bool, _ []string) {
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var document any
	if err := decoder.Decode(&document); err != nil {
		ts.Fatalf("no JSON document on standard output: %v", err)
	}
	if err := decoder.Decode(&document); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one JSON document on standard output (%v)", err)
	}
}

// term: asks the background program that was started last to end.
func term(ts *testscript.TestScript, _ bool, _ []string) {
	running := ts.BackgroundCmds()
	ts.Check(running[len(running)-1].Process.Signal(syscall.SIGTERM))
}

// endbroker: ends the background broker of the home, and waits for its end.
func endBroker(ts *testscript.TestScript, _ bool, _ []string) {
	home := ts.Getenv("BRIDGE_HOME")
	endBrokers(filepath.Dir(home))
	deadline := time.Now().Add(testkit.Patience)
	for {
		if _, err := brokerOf("--home", home); err != nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the broker of %s does not end", home)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// within DURATION STDIN COMMAND...: the command, given that file on standard
// input, ends with exit code 0 in time. Its standard output goes to the file out.
func within(ts *testscript.TestScript, _ bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	var input io.Reader
	if args[1] != "-" {
		input = strings.NewReader(strings.ReplaceAll(ts.ReadFile(args[1]), "$WORK", ts.Getenv("WORK")))
	} else {
		held, writer, err := os.Pipe() // a host that never ends its input
		ts.Check(err)
		defer held.Close()
		defer writer.Close()
		input = held
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[2], args[3:]...)
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "BRIDGE_HOME="+ts.Getenv("BRIDGE_HOME"))
	cmd.Stdin = input
	output, err := cmd.Output()
	if err != nil {
		ts.Fatalf("%s: %v (limit %s)", strings.Join(args[2:], " "), err, limit)
	}
	ts.Check(os.WriteFile(ts.MkAbs("out"), output, 0o600))
}

// listing FILE DIR: writes down every file below DIR with its mode and bytes.
func listing(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(describe(ts.MkAbs(args[1]))), 0o600))
}

// unchanged FILE DIR: DIR is as the listing says.
func unchanged(ts *testscript.TestScript, _ bool, args []string) {
	if before, after := ts.ReadFile(args[0]), describe(ts.MkAbs(args[1])); before != after {
		ts.Fatalf("%s changed:\n--- before\n%s--- after\n%s", args[1], before, after)
	}
}

// describe lists what is below dir: kind, mode, name, size and checksum.
func describe(dir string) string {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%d bytes %x", len(raw), sha256.Sum256(raw))
		}
		lines = append(lines, fmt.Sprintf("%s %s %s\n", info.Mode(), name, content))
		return nil
	})
	if err != nil {
		lines = append(lines, err.Error()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// session drives one MCP session: `session <flags of bridge mcp> -- TOOL JSON
// [TOOL JSON...]`. It prints what the server says of itself and each answer.
func session(args []string, output io.Writer) error {
	at := slices.Index(args, "--")
	if at < 0 {
		return errors.New("usage: session FLAGS -- TOOL JSON ...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	// An interrupted session ends its server first: one left behind would start a broker
	// again when the script's have been ended.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	c, err := client.NewStdioMCPClient("bridge", nil, append([]string{"mcp"}, args[:at]...)...)
	if err != nil {
		return err
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	welcome, err := c.Initialize(ctx, request)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	fmt.Fprintf(output, "instructions: %s\n", welcome.Instructions)
	for calls := args[at+1:]; len(calls) > 1; calls = calls[2:] {
		if err := callTool(ctx, c, calls[0], calls[1], output); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

func callTool(ctx context.Context, c *client.Client, tool, arguments string, output io.Writer) error {
	request := mcp.CallToolRequest{}
	request.Params.Name = tool
	if err := json.Unmarshal([]byte(arguments), &request.Params.Arguments); err != nil {
		return err
	}
	result, err := c.CallTool(ctx, request)
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	var text bytes.Buffer
	for _, content := range result.Content {
		if block, ok := content.(mcp.TextContent); ok {
			text.WriteString(block.Text)
		}
	}
	word := tool
	if result.IsError {
		word += " refused"
	}
	_, err = fmt.Fprintf(output, "%s: %s\n", word, text.String())
	return err
}

// job-named VARIABLE: keeps the name of the job that the last output tells of.
func jobNamed(ts *testscript.TestScript, _ bool, args []string) {
	name := regexp.MustCompile(`(claude|opencode)-(job|ask)-[0-9a-f]{8}`).FindString(ts.ReadFile("stdout"))
	if name == "" {
		ts.Fatalf("the last output tells of no job")
	}
	ts.Setenv(args[0], name)
}

// openPage opens a launch link and reads the state of the page with what it gives.
func openPage(file string, output io.Writer) error {
	link, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := http.Client{Jar: jar, Timeout: testkit.Patience}
	address, err := url.Parse(strings.TrimSpace(string(link)))
	if err != nil {
		return err
	}
	for _, at := range []string{address.String(), address.Scheme + "://" + address.Host + "/api/state"} {
		answer, err := browser.Get(at)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s", answer.StatusCode, body)
		}
	}
	fmt.Fprintln(output, http.StatusOK)
	return nil
}

// take VAR REGEXP sets VAR to what the first group of the expression matches in the
// last output.
func take(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("the last output does not match %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// mute takes a socket and never answers on it.
func mute(socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	var held []net.Conn // or the collector would close them
	for {
		conn, err := listener.Accept()
		if err != nil {
			return errors.Join(err, fmt.Errorf("%d callers", len(held)))
		}
		held = append(held, conn)
	}
}
