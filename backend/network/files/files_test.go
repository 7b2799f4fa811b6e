package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

func TestRMT_20_FilesArriveWholeInTheInbox(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{
		"large.bin": noise(5<<20 + 17), "notes/empty": {}, "notes/deep/er/x.txt": []byte("text"), "notes/chunk": noise(256 << 10), "z-last-empty": {},
	}
	for i := range 300 {
		content[fmt.Sprintf("many/%d", i)] = noise(i)
	}
	each(t, func(t *testing.T, laptop, desk *pc) {
		sent, err := laptop.Send("desk", []string{made(t, content)})
		if err != nil {
			t.Fatal(err)
		}
		if ended := laptop.await(sent.ID); ended.State != api.TransferDone || ended.Done != ended.Bytes || ended.Files != len(content) || ended.Folder != "" {
			t.Fatalf("the sender says %+v", ended)
		}
		came := desk.arrived(sent.ID)
		if came.State != api.TransferDone || came.PC.Name != "laptop" || came.Folder != filepath.Join(desk.home.Dir(), "inbox", sent.ID) || !came.Incoming || came.Names[0] != "sent/" {
			t.Errorf("the receiver says %+v", came)
		}
		holds(t, came.Folder, below(content))
		desk.restart() // nothing is left to do
		if entries, _ := os.ReadDir(filepath.Join(desk.home.Dir(), "network", "incoming")); len(entries) != 0 {
			t.Errorf("%d folders are left of it", len(entries))
		}
		if list := desk.List().Transfers; len(list) != 1 || list[0].ID != sent.ID || list[0].State != api.TransferDone || list[0].Names[0] != "sent/" {
			t.Errorf("after a restart it is listed as %+v", list)
		}
	})
}

func TestRMT_20_WhatCannotBeSentIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, laptop, desk *pc) {
		folder := made(t, map[string][]byte{"a": []byte("a"), "sub/b": []byte("b")})
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(folder, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("b", filepath.Join(folder, "sub", "inner")); err != nil {
			t.Fatal(err)
		}
		empty := t.TempDir()
		for _, tt := range []struct {
			host  string
			paths []string
			code  bridge.Code
			says  string
		}{
			{"desk", nil, bridge.Invalid, "name a file"},
			{"desk", []string{"relative"}, bridge.Invalid, "no absolute path"},
			{"desk", []string{filepath.Join(folder, "gone")}, bridge.NotFound, "no such file"},
			{"desk", []string{link}, bridge.Invalid, "is a link"},
			{"desk", []string{folder}, bridge.Invalid, "inner is a link"},
			{"desk", []string{"/dev/null"}, bridge.Invalid, "neither a file nor a folder"},
			{"desk", []string{empty}, bridge.Invalid, "no file in what was named"},
			{"desk", []string{filepath.Join(folder, "a"), filepath.Join(folder, "a")}, bridge.Invalid, `"a" is there twice`},
			{"nobody", []string{filepath.Join(folder, "a")}, bridge.NotFound, `no PC named "nobody"`},
		} {
			if _, err := laptop.Send(tt.host, tt.paths); bridge.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q to %s: %v", tt.paths, tt.host, err)
			}
		}
		desk.end.Cut()
		if _, err := laptop.Send("desk", []string{filepath.Join(folder, "a")}); bridge.CodeOf(err) != bridge.Unavailable {
			t.Errorf("without a link: %v", err)
		}
		if list := laptop.List().Transfers; len(list) != 0 {
			t.Errorf("recorded: %+v", list)
		}
	})
}
