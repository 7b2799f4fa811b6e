package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzConfigFile: whatever config.json holds, Bridge either names what is wrong or reads
// it; then an edit without a change keeps every byte, and a change is read back.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{
		"{}", "{\"port\": 1}\r\n", "\xef\xbb\xbf{}", `{"port": 1, "port": 2}`, `{"agents": {"acp": {"a": {"command": ["x"]}}}}`, `{"version": 2}`, `{"network": {"port": -1}}`,
		`{"jobs": {"maxRunning": 1e3}}`, `null`, `[]`, `{"desktop": {"quiet": {"from": "25:00"}}}`, `{"name": "\u0000"}`, `{"unknown": {"a/b~c": [1]}}`, `{"jobs": {"writable": ["/"]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := parse(raw)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		same, err := patch(raw, config, config)
		if err != nil || !bytes.Equal(same, raw) {
			t.Fatalf("without a change (%v): %q became %q", err, raw, same)
		}
		want := config
		want.Port, want.MaxHops = 65535-config.Port, config.MaxHops^1
		edited, err := patch(raw, config, want)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		got, err := parse(edited)
		gotText, gotErr := json.Marshal(got)
		wantText, wantErr := json.Marshal(want)
		if err := errors.Join(err, gotErr, wantErr); err != nil || !bytes.Equal(gotText, wantText) {
			t.Fatalf("%q became %q (%v):\n%s, want\n%s", raw, edited, err, gotText, wantText)
		}
	})
}
