package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// server is one real `bridge mcp` process and the JSON-RPC lines to it.
type server struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	ended  chan struct{} // closed when its output has ended
	exited chan error    // how it ended

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// errEnded says that the process ended before it answered.
var errEnded = errors.New("the MCP server has ended")

func startServer(ctx context.Context, program string, args ...string) (*server, error) {
	return serveLines(ctx, exec.Command(program, args...), (*exec.Cmd).Start)
}

func serveLines(ctx context.Context, cmd *exec.Cmd, start func(*exec.Cmd) error) (*server, error) {
	s := &server{
		cmd: cmd, ended: make(chan struct{}), exited: make(chan error, 1), waiting: map[int]chan answer{},
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := start(s.cmd); err != nil {
		return nil, err
	}
	go s.read(output)
	_, err = s.request(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "soak", "version": "1"},
	})
	return s, err
}

func (s *server) read(output io.Reader) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		s.mu.Lock()
		waiting := s.waiting[a.ID]
		delete(s.waiting, a.ID)
		s.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
	close(s.ended)
	s.exited <- s.cmd.Wait()
}

func (s *server) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	s.mu.Lock()
	s.last++
	id, waiting := s.last, make(chan answer, 1)
	s.waiting[id] = waiting
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err == nil {
		_, err = s.input.Write(append(line, '\n'))
	}
	s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(errEnded, err)
	}
	select {
	case a := <-waiting:
		if a.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, a.Error)
		}
		return a.Result, nil
	case <-s.ended:
		select { // it may have answered before it ended
		case a := <-waiting:
			return a.Result, nil
		default:
			return nil, errEnded
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// call runs one tool and decodes its JSON answer.
func (s *server) call(ctx context.Context, tool string, args any, into any) error {
	raw, err := s.request(ctx, "tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return err
	}
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return err
	}
	if len(result.Content) != 1 {
		return fmt.Errorf("%s answered %d blocks", tool, len(result.Content))
	}
	if result.IsError {
		return fmt.Errorf("%s: %s", tool, result.Content[0].Text)
	}
	return json.Unmarshal([]byte(result.Content[0].Text), into)
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL) // it may have ended by itself
	<-s.ended
}

// close ends the process as a host does: it closes its input.
func (s *server) close() error {
	_ = s.input.Close() // closed once
	return <-s.exited
}
