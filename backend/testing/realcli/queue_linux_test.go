package realcli_test

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // the handshake of a WebSocket asks for it
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent"
	"bridge/backend/core/chat"
	"bridge/backend/testing/testkit"
)

// TestCHT_06_TheRealCodexRefuses: the refusals that count as certain are worded as
// the real CLI words them, and its other ends are not among them.
func TestCHT_06_TheRealCodexRefuses(t *testing.T) {
	const thread = "0199f0aa-1111-7222-8333-444455556666"
	w := newWorld(t, "p")
	inHome := func(program string) string {
		path := filepath.Join(w.home.Root, program)
		var env strings.Builder
		for _, pair := range w.home.Env() {
			fmt.Fprintf(&env, " '%s'", pair)
		}
		script := "#!/bin/sh\ncase " + program + " in older) shift; set -- no-queue \"$@\";; esac\nexec env -i" + env.String() + " codex \"$@\"\n"
		must(t, testkit.WriteProgram(path, []byte(script), 0o700))
		return path
	}
	push := func(program, thread string, want chat.QueueResult, words string) {
		t.Helper()
		result, reason := agent.Queue{Bin: inHome(program)}.Push(soon(t), thread, "hello")
		if result != want || !strings.Contains(reason, words) {
			t.Errorf("%s for %s: %s, %q; want %s with %q", program, thread, result, reason, want, words)
		}
	}
	push("codex", thread, chat.QueueRefused, "knows no thread")
	push("codex", "nobody", chat.QueueRefused, "knows no session")
	push("older", thread, chat.QueueUnsupported, "too old to know the command")
	for _, answer := range []struct {
		failure string // "" ends the connection
		want    chat.QueueResult
		words   string
	}{
		{`{"code":-32601,"message":"Method not found"}`, chat.QueueUnsupported, "background server is too old"},
		{"{\"code\":-32600,\"message\":\"Invalid request: unknown variant `thread/queue/add`, expected `initialize`\"}", chat.QueueUnsupported, "background server is too old"},
		{`{"code":-32603,"message":"the database is locked"}`, chat.QueueUnclear, "the database is locked"},
		{"", chat.QueueUnclear, "transport"},
	} {
		end := serveCodex(t, filepath.Join(w.home.Dir, ".codex", "app-server-control", "app-server-control.sock"), answer.failure)
		push("codex", thread, answer.want, answer.words)
		end()
	}
	must(t, w.home.Append(".codex/config.toml", "\nbroken = ["))
	push("codex", thread, chat.QueueUnclear, "failed to load config.toml")
}

// serveCodex stands in for codex's background server: it greets whoever comes
// and answers every other request with failure, or not at all.
func serveCodex(t *testing.T, socket, failure string) (end func()) {
	must(t, os.MkdirAll(filepath.Dir(socket), 0o700))
	listener, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(t.Context()), "unix", socket)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = answerCodex(conn, failure) // codex says what came of it
			_ = conn.Close()
		}
	}()
	return func() {
		must(t, listener.Close())
		<-done
	}
}

// answerCodex speaks as much of WebSocket as one request needs.
func answerCodex(conn net.Conn, failure string) error {
	in := bufio.NewReader(conn)
	request, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	key := sha1.Sum([]byte(request.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see above
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(key[:]))
	for {
		text, err := frame(in)
		if err != nil {
			return err
		}
		var call struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		if json.Unmarshal(text, &call) != nil || call.ID == nil {
			continue
		}
		answer := map[string]any{"id": call.ID}
		switch {
		case call.Method == "initialize":
			answer["result"] = map[string]string{"userAgent": "codex/0.1.0", "codexHome": "/", "platformFamily": "unix", "platformOs": "linux"}
		case failure == "":
			return nil
		default:
			answer["error"] = json.RawMessage(failure)
		}
		out, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		header := binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(out)))
		if _, err := conn.Write(append(header, out...)); err != nil {
			return err
		}
	}
}

// frame reads one frame of a client: masked, and shorter than 64 KiB.
func frame(in io.Reader) ([]byte, error) {
	header := make([]byte, 2)
	if _, err := io.ReadFull(in, header); err != nil {
		return nil, err
	}
	size := int(header[1] & 0x7f)
	if size == 126 {
		long := make([]byte, 2)
		if _, err := io.ReadFull(in, long); err != nil {
			return nil, err
		}
		size = int(binary.BigEndian.Uint16(long))
	}
	text := make([]byte, 4+size)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, err
	}
	mask, text := text[:4], text[4:]
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return text, nil
}
