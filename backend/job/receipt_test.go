package job

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/bridge"
)

func TestAPendingWriteIsMergedMemberByMember(t *testing.T) {
	tests := []struct{ name, base, written, present, want string }{
		{"only what was changed", `{"name":"j","title":"a","model":"m","odd":[1]}`, `{"name":"j","title":"b","model":"m","odd":[1]}`, `{"name":"j","title":"a","model":"n","odd":[1, 2],"new":1}`, `{"name":"j","title":"b","model":"n","odd":[1,2],"new":1}`},
		{"what was taken out", `{"name":"j","note":"x"}`, `{"name":"j"}`, `{"name":"j","note":"x","z":1}`, `{"name":"j","z":1}`},
		{"a new job", ``, `{"name":"j","status":"running","state":"queued"}`, ``, `{"name":"j","status":"running","state":"queued"}`},
		{"JOB-03 an end stays an end", `{"name":"j","status":"running","run":1}`, `{"name":"j","status":"running","state":"waiting","run":1,"title":"t"}`, `{"name":"j","status":"done","run":1,"finishedAt":5}`, `{"name":"j","status":"done","run":1,"finishedAt":5,"title":"t"}`},
		{"an end ends", `{"name":"j","status":"running","run":1}`, `{"name":"j","status":"done","run":1,"finishedAt":5}`, `{"name":"j","status":"running","run":1,"percent":9}`, `{"name":"j","status":"done","run":1,"finishedAt":5,"percent":9}`},
		{"JOB-05 a late end takes no continuation back", `{"name":"j","status":"running","run":1}`, `{"name":"j","status":"done","run":1,"finishedAt":5}`, `{"name":"j","status":"running","run":2}`, `{"name":"j","status":"running","run":2}`},
		{"a continuation continues", `{"name":"j","status":"done","run":1,"finishedAt":5}`, `{"name":"j","status":"running","run":2}`, `{"name":"j","status":"done","run":1,"finishedAt":5}`, `{"name":"j","status":"running","run":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			receipt := Receipt{Job: json.RawMessage(tt.written), BaseJob: json.RawMessage(tt.base)}
			var present json.RawMessage
			if tt.present != "" {
				present = json.RawMessage(tt.present)
			}
			out, err := receipt.Merge(present)
			var got, want any
			if err == nil {
				err = errors.Join(json.Unmarshal(out, &got), json.Unmarshal([]byte(tt.want), &want))
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("Merge = %s, %v: %s", out, err, diff)
			}
		})
	}
}

func TestJOB_04_AReceiptOver32MiBIsForAPerson(t *testing.T) {
	const text = `{"schemaVersion":1,"writer":{"name":"b","session":"s","nonce":"n"},"sequence":2,"recordedAt":5,"job":{"name":"j","x":"` // and so on
	receipt := func(size int) []byte { return []byte(text + strings.Repeat("x", size-len(text)-3) + `"}}`) }
	if got, err := DecodeReceipt(receipt(32 * 1024 * 1024)); err != nil || got.Writer.Nonce != "n" || got.Sequence != 2 {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := DecodeReceipt(receipt(32*1024*1024 + 1)); !errors.Is(err, ErrManual) {
		t.Errorf("over the limit: %v", err)
	}
	for _, wrong := range []string{`{"schemaVersion":2,"job":{}}`, `{"schemaVersion":1}`} {
		if _, err := DecodeReceipt([]byte(wrong)); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("DecodeReceipt(%s) = %v", wrong, err)
		}
	}
}
