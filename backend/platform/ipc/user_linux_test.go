package ipc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/wire"
	"bridge/backend/testing/testkit"
)

// nobody is a user that owns nothing.
const nobody = 65534

// dialAsChild is the test binary as another process: it knows the token, says
// hello and prints what came of it.
func dialAsChild(socket string) int {
	if os.Getenv(childLeaves) != "" {
		return leaveConnection(socket)
	}
	conn, err := dial(context.Background(), socket)
	if err != nil {
		fmt.Println("dial failed:", err)
		return 1
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		fmt.Println(err)
		return 1
	}
	hello, err := appendFrame(nil, helloFrame(secret, Protocol))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, _ = conn.Write(hello) // the other side may have closed already
	got, err := wire.ReadFrame(bufio.NewReader(conn), bridge.MaxFrameBytes)
	fmt.Printf("user %d read %q, %v\n", os.Getuid(), got, err)
	return 0
}

func TestMSG_02_AnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT PROVEN HERE: only root can run a process as another user")
	}
	dir, err := os.MkdirTemp("/tmp", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	socket, program := filepath.Join(dir, "bridge.sock"), filepath.Join(dir, "child")
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteProgram(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	r := serve(t, socket, newFake())
	// Everything that the file system would refuse is opened: the link itself must refuse.
	for _, path := range []string{dir, program, socket} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	run := func(uid uint32) string {
		child := exec.CommandContext(t.Context(), program)
		child.Dir = dir
		child.Env = []string{childDials + "=" + socket}
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("the child of user %d: %v\n%s", uid, err, out)
		}
		return string(out)
	}
	if out := run(nobody); !strings.Contains(out, `user 65534 read ""`) {
		t.Errorf("another user was answered: %s", out)
	}
	if len(r.connected) != 0 {
		t.Error("another user reached the broker")
	}

	t.Run("MSG-02 the same user is let in", func(t *testing.T) { // so the refusal is the user's
		if out := run(0); !strings.Contains(out, `\"version\":\"v1\"`) {
			t.Errorf("the same user got: %s", out)
		}
	})
}
