package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSEC_10_SocketsOfJobs reads jobs.sockets: paths, paths below the user's home, and
// variables; anything else is refused and names what was wrong.
func TestSEC_10_SocketsOfJobs(t *testing.T) {
	environ := map[string]string{"SSH_AUTH_SOCK": "/tmp/ssh-1/agent.2", "RELATIVE": "agent"}
	getenv := func(name string) string { return environ[name] }
	for _, tt := range []struct {
		sockets []string
		want    []string
		refused string
	}{
		{nil, nil, ""},
		{[]string{"/run/docker.sock"}, []string{"/run/docker.sock"}, ""},
		{[]string{"~/.gnupg/S.gpg-agent", "$SSH_AUTH_SOCK"}, []string{"/home/me/.gnupg/S.gpg-agent", "/tmp/ssh-1/agent.2"}, ""},
		{[]string{"$NOT_SET", "$RELATIVE"}, nil, ""},
		{[]string{"docker.sock"}, nil, `"docker.sock"`},
		{[]string{"~"}, nil, `"~"`},
		{[]string{""}, nil, `""`},
		{[]string{"$"}, nil, `"$"`},
		{[]string{"$A/b"}, nil, `"$A/b"`},
	} {
		jobs := defaultJobs()
		jobs.Sockets = tt.sockets
		err := jobs.check()
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), "jobs.sockets must list absolute paths, paths below ~/, or $NAME, not "+tt.refused) {
			t.Errorf("%q: %v, want a refusal of %s", tt.sockets, err, tt.refused)
		}
		if got := jobs.SocketPaths("/home/me", getenv); err == nil && !slices.Equal(got, tt.want) {
			t.Errorf("%q are %q, want %q", tt.sockets, got, tt.want)
		}
	}
}

func TestRWM_22_TheFoldersThatJobsMayWrite(t *testing.T) {
	jobs := Jobs{Writable: []string{"~/.m2", "/srv/cache/", "~/"}}
	want := []string{filepath.Join("/home/me", ".m2"), filepath.Clean("/srv/cache"), filepath.Clean("/home/me")}
	if got := jobs.WritableFolders("/home/me"); !slices.Equal(got, want) {
		t.Errorf("they are %q, want %q", got, want)
	}
}
