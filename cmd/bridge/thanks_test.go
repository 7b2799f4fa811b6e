package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/delivery"
	"bridge/backend/testing/testkit"
)

// thanker is an idle claude that is woken by its waiting hook only.
type thanker struct {
	name, session string
	tools         *client.Client
	woken         int
}

// thanks has two sessions thank each other whenever one wakes the other. It ends when the
// answer to a message says that its recipient is not woken yet (QUI-03).
func thanks(output io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	from, to := &thanker{name: "web", session: "h1"}, &thanker{name: "api", session: "h2"}
	both := []*thanker{from, to}
	for _, agent := range both {
		if err := agent.join(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, agent.tools.Close()) }()
	}
	for {
		woken, answer, err := from.thank(ctx, to)
		if err != nil {
			return err
		}
		if !woken {
			_, err := fmt.Fprintf(output, "web was woken %d times, api %d times\n%s\n", both[0].woken, both[1].woken, answer)
			return err
		}
		if from, to = to, from; to.woken > 20 {
			return fmt.Errorf("%s was woken %d times, and no message waits", to.name, to.woken)
		}
	}
}

// join connects the session and ends a turn of it.
func (agent *thanker) join(ctx context.Context) (err error) {
	agent.tools, err = client.NewStdioMCPClient("bridge", nil, "mcp", "--agent", "claude", "--name", agent.name, "--session", agent.session, "--cwd", "/")
	if err != nil {
		return err
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	if _, err := agent.tools.Initialize(ctx, request); err != nil {
		return err
	}
	return agent.hook(ctx, "Stop", "").Run()
}

// hook is a call of the session's hook.
func (agent *thanker) hook(ctx context.Context, event, prompt string) *exec.Cmd {
	call, _ := json.Marshal(map[string]string{"session_id": agent.session, "cwd": "/", "prompt": prompt}) // strings always encode
	cmd := exec.CommandContext(ctx, "bridge", "hook", "claude", event)
	cmd.Stdin = bytes.NewReader(call)
	return cmd
}

// thank sends thanks to the other session while its hook waits. woken is false if the
// answer says that it is not woken yet. A woken session has a turn.
func (agent *thanker) thank(ctx context.Context, to *thanker) (woken bool, answer string, err error) {
	wake := to.hook(ctx, "Wake", "")
	var text, sent bytes.Buffer
	wake.Stderr = &text
	if err := wake.Start(); err != nil {
		return false, "", err
	}
	if err := to.awaitHook(ctx); err != nil {
		return false, "", err
	}
	if err := callTool(ctx, agent.tools, "send", `{"to":"`+to.name+`","message":"thanks"}`, &sent); err != nil {
		return false, "", err
	}
	if strings.Contains(sent.String(), "waits: ") {
		_ = wake.Process.Kill()
		_ = wake.Wait()
		return false, strings.TrimSpace(sent.String()), nil
	}
	if code := exitCode(wake.Wait()); code != 2 {
		return false, "", fmt.Errorf("the hook of %s ends with exit code %d: %s", to.name, code, sent.String())
	}
	to.woken++
	for _, event := range []string{"UserPromptSubmit", "Stop"} {
		if err := to.hook(ctx, event, text.String()).Run(); err != nil {
			return false, "", err
		}
	}
	return true, sent.String(), nil
}

// awaitHook waits until the session's hook is known to wait.
func (agent *thanker) awaitHook(ctx context.Context) error {
	for ctx.Err() == nil {
		status, err := brokerOf("--home", os.Getenv("BRIDGE_HOME"))
		if err != nil {
			return err
		}
		for _, peer := range status.Peers {
			if peer.Name == agent.name && peer.Wake == delivery.WakeOpen {
				return nil
			}
		}
		<-time.After(20 * time.Millisecond)
	}
	return ctx.Err()
}
