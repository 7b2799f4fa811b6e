package clidata

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCHT_03_ClaudesOwnWordThatASessionIsIdle(t *testing.T) {
	for name, tt := range map[string]struct {
		entry string
		want  int64
	}{
		"idle":                {`{"pid":7,"sessionId":"s1","status":"idle","updatedAt":9,"statusUpdatedAt":5,"name":"x"}`, 5},
		"busy":                {`{"pid":7,"sessionId":"s1","status":"busy","statusUpdatedAt":5}`, 0},
		"waiting":             {`{"pid":7,"sessionId":"s1","status":"waiting","statusUpdatedAt":5}`, 0},
		"another session":     {`{"pid":7,"sessionId":"s2","status":"idle","statusUpdatedAt":5}`, 0},
		"another process":     {`{"pid":8,"sessionId":"s1","status":"idle","statusUpdatedAt":5}`, 0},
		"a form of its own":   {`{"pid":"7","sessionId":"s1","status":"idle","statusUpdatedAt":5}`, 0},
		"half written":        {`{"pid":7,"sessionId":"s1","status":"id`, 0},
		"without a time":      {`{"pid":7,"sessionId":"s1","status":"idle"}`, 0},
		"an entry that is no": {``, 0},
	} {
		t.Run("CHT-03 "+name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "sessions"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "sessions", "7.json"), []byte(tt.entry), 0o600); err != nil { //nolint:forbidigo // a test's file
				t.Fatal(err)
			}
			if got := ClaudeIdleSince(folder, 7, "s1"); got != tt.want {
				t.Errorf("idle since %d, want %d", got, tt.want)
			}
		})
	}
	if got := ClaudeIdleSince(filepath.Join(t.TempDir(), "none"), 7, "s1"); got != 0 {
		t.Errorf("without a registry: idle since %d", got)
	}
}
