package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// drawn returns what work draws, with a clock that only moves while all wait.
func drawn(t *testing.T, work func(p *Progress)) (text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out")
	synctest.Test(t, func(t *testing.T) {
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		work(&Progress{out: out, now: time.Now})
	})
	text = string(must(os.ReadFile(path))(t))
	return text
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestDOC_09_ProgressAppearsAfterASecond(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func(p *Progress)
		want string
	}{
		{"quick work", func(p *Progress) {
			p.Tell("x", 0, 10)
			time.Sleep(999 * time.Millisecond)
			p.Tell("x", 9, 10)
			p.End()
			time.Sleep(time.Minute)
		}, ""},
		{"long work", func(p *Progress) {
			p.Tell("x", 1, 10)
			time.Sleep(time.Second)
			synctest.Wait()
			p.End()
		}, "\r 10% x\r      \r"},
		{"the latest state is drawn first", func(p *Progress) {
			p.Tell("x", 1, 10)
			p.Tell("y", 2, 10)
			time.Sleep(time.Second)
			synctest.Wait()
		}, "\r 20% y, 8s left"},
		{"a line replaces a longer one", func(p *Progress) {
			p.Tell("long", 1, 10)
			time.Sleep(time.Second)
			synctest.Wait()
			time.Sleep(progressPace)
			p.Tell("x", 1, 10)
		}, "\r 10% long\r 10% x   "},
		{"lines keep their pace", func(p *Progress) {
			p.Tell("x", 1, 10)
			time.Sleep(time.Second)
			synctest.Wait()
			time.Sleep(progressPace - 1)
			p.Tell("x", 5, 10)
		}, "\r 10% x"},
		{"the next work waits for its own second", func(p *Progress) {
			p.Tell("x", 1, 10)
			time.Sleep(900 * time.Millisecond)
			p.End()
			p.Tell("y", 1, 10)
			time.Sleep(900 * time.Millisecond)
			synctest.Wait()
		}, ""},
		{"a step without a size", func(p *Progress) {
			p.Tell("x", 0, 0)
			time.Sleep(time.Minute)
			synctest.Wait()
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := drawn(t, tt.work); got != tt.want {
				t.Errorf("drawn: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDOC_09_APipeAndADumbTerminalShowNoProgress(t *testing.T) {
	var pipe bytes.Buffer
	if p := NewProgress(&pipe, time.Now); p.out != nil {
		t.Error("a pipe shows progress")
	}
	for term, isShown := range map[string]bool{"xterm": true, "dumb": false} {
		t.Setenv("TERM", term)
		shown(t, func(file *os.File) {
			if p := NewProgress(Writer(file), time.Now); (p.out != nil) != isShown {
				t.Errorf("a terminal with TERM=%s shows progress: %t", term, p.out != nil)
			}
		})
	}
}
