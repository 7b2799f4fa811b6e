package conformance

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// change replaces a text that stands once in a file of the sources.
type change struct{ file, before, after string }

// build builds the programs from the sources with some changes. The sources themselves stay
// as they are: the go command is given the changed files beside them, so no variable and no
// option of a shipped program changes what it does.
func build(t *testing.T, changes ...change) (folder string) {
	t.Helper()
	folder = t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for _, c := range changes {
		path, err := filepath.Abs(filepath.Join("..", "..", "..", filepath.FromSlash(c.file)))
		must(t, err)
		text, err := os.ReadFile(path)
		must(t, err)
		if n := strings.Count(string(text), c.before); n != 1 {
			t.Fatalf("%q stands %d times in %s, want once", c.before, n, c.file)
		}
		changed := filepath.Join(folder, strings.ReplaceAll(c.file, "/", "_"))
		must(t, os.WriteFile(changed, []byte(strings.Replace(string(text), c.before, c.after, 1)), 0o600))
		overlay["Replace"][path] = changed
	}
	text, err := json.Marshal(overlay)
	must(t, err)
	list := filepath.Join(folder, "overlay.json")
	must(t, os.WriteFile(list, text, 0o600))
	made := filepath.Join(filepath.Dir(attacker), "changed-"+filepath.Base(filepath.Dir(folder))+"-"+filepath.Base(folder))
	must(t, os.Mkdir(made, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(made) })
	args := []string{"-overlay=" + list}
	for _, program := range testkit.Programs {
		args = append(args, "bridge/cmd/"+program)
	}
	must(t, errors.Join(testkit.Build(made, args...), os.Chmod(made, 0o755)))
	return made
}

// leastLandlock is the oldest version of Landlock with which Bridge has a sandbox.
const leastLandlock = 3

// olderKernel makes the sandbox as a kernel with the oldest Landlock does: without bounds
// for signals and abstract sockets.
var olderKernel = change{"backend/platform/sandbox/exec_linux.go", "HandledAccessFS: landlock.V6.HandledAccessFS, Scoped: landlock.V6.Scoped", "HandledAccessFS: landlock.V3.HandledAccessFS"}

// TestSEC_14_AnOlderKernel tries every attack with the sandbox of an older kernel.
func TestSEC_14_AnOlderKernel(t *testing.T) {
	testkit.Long(t, "it builds the programs again and tries every agent")
	kernel(t)
	localCells(t, build(t, olderKernel), leastLandlock, kinds)
}

// TestSEC_14_EachMissingLayerIsNamed builds the programs without one layer each, and wants the
// suite to name attacks of the classes that the layer refuses.
func TestSEC_14_EachMissingLayerIsNamed(t *testing.T) {
	testkit.Long(t, "it builds the programs again for each layer")
	landlock := kernel(t)
	for _, layer := range []struct {
		name    string
		access  job.Access
		changes []change
		names   []class
	}{
		{
			"no sandbox for files", job.AccessEdit,
			[]change{{"backend/platform/sandbox/exec_linux.go", "if err := floor.Restrict(rights...); err != nil {", "if err := error(nil); err != nil || len(rights) == 0 || floor.HandledAccessFS == 0 {"}},
			[]class{writeOutside, readSecrets, poisonState},
		},
		{
			"no job is known by its processes", job.AccessEdit,
			[]change{{"backend/platform/sandbox/trees.go", "func (t *Trees) all() []tree {\n", "func (t *Trees) all() []tree {\n\treturn nil\n"}},
			[]class{becomeOwner},
		},
		{
			"nothing that a job leaves is ended", job.AccessEdit,
			[]change{{"backend/jobs/runner/runner.go", "return sandbox.End(ctx, r.mark, r.state.Processes)", "_ = sandbox.End\n\treturn ctx.Err()"}},
			[]class{survive},
		},
		{
			"no connection is supervised", job.AccessRead,
			[]change{{"backend/agent/driver/run/process.go", "rules.Supervised, c.connections = true, supervisor", "_ = supervisor"}},
			[]class{writeOutside},
		},
		{
			"attributes may be changed", job.AccessRead,
			[]change{{"backend/agent/driver/run/process.go", "rules.KeepAttributes = true", ""}},
			[]class{writeOutside},
		},
		{
			"git runs as it is", job.AccessEdit,
			[]change{{"backend/jobs/gitwork/git.go", "sandbox: opts.Sandbox, scratch", "untamed: true, scratch"}},
			[]class{startProgram},
		},
		{
			"text goes to terminals as it is", job.AccessAsk,
			[]change{{"backend/core/bridge/visible.go", "func makeVisible(text string, isExact bool) string {\n\tif isPlainASCII(text) {", "func makeVisible(text string, isExact bool) string {\n\tif isPlainASCII(text) || !isExact || isExact {"}},
			[]class{display},
		},
	} {
		t.Run(layer.name, func(t *testing.T) {
			p := newPC(t, "desk", build(t, layer.changes...), nil)
			c := newCell(t, setting{job.ACP, layer.access, local, landlock}, p, p, filepath.Join(p.dir, "work"))
			named := map[class][]string{}
			for _, r := range c.run() {
				switch {
				case r.attack.open != "":
				case r.succeeded:
					named[r.attack.class] = append(named[r.attack.class], r.attack.name)
				case slices.Contains(layer.names, r.attack.class):
					t.Logf("another layer refuses %q: %s", r.attack.name, r.outcome.Failed)
				}
			}
			for _, class := range classes {
				if slices.Contains(layer.names, class) && len(named[class]) == 0 {
					t.Errorf("the suite names no attack of the class %q", class)
				}
				t.Logf("%s: %q", class, named[class])
			}
		})
	}
}

// TestSEC_14_TheRingSends wants the attack by io_uring to work where nothing refuses it.
func TestSEC_14_TheRingSends(t *testing.T) {
	door, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer door.Close()
	r, err := openRing()
	if err != nil {
		t.Skipf("NOT PROVEN HERE: this system has no io_uring: %v", err)
	}
	fd, err := dialPage(door.Addr().String())
	must(t, err)
	must(t, r.hold(fd))
	conn, err := door.Accept()
	must(t, err)
	defer conn.Close()
	must(t, r.send([]byte("hello")))
	must(t, conn.SetReadDeadline(time.Now().Add(testkit.Patience)))
	said := make([]byte, 5)
	if _, err := io.ReadFull(conn, said); err != nil || string(said) != "hello" {
		t.Errorf("it sends %q, %v", said, err)
	}
}
