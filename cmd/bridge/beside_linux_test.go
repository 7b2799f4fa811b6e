package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/doors/worker"
)

// What a session keeps running is the program without a database, by the same process.
func TestMSG_01_ASessionsServerBecomesTheProgramBesideAgents(t *testing.T) {
	home := filepath.Join(t.TempDir(), "h")
	t.Cleanup(func() { endBrokers(filepath.Dir(home)) })
	cmd := exec.CommandContext(t.Context(), "bridge", "mcp", "--agent", "codex", "--name", "alpha", "--session", "h1", "--cwd", "/", "--home", home)
	cmd.Env = append(os.Environ(), "BRIDGE_PORT=0")
	input, inErr := cmd.StdinPipe()
	output, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	_, err := io.WriteString(input, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	line, readErr := bufio.NewReader(output).ReadString('\n')
	if err := errors.Join(err, readErr); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Fatalf("it answers %q, %v", line, err)
	}
	called, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	if words := strings.Split(string(called), "\x00"); err != nil || filepath.Base(words[0]) != worker.MCPName || words[1] != "mcp" {
		t.Errorf("it runs as %q, %v", words, err)
	}
	if err := errors.Join(input.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}
