package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"
)

// jsonc draws a settings file: members in any order, comments, trailing commas,
// any indentation, on one line or on many.
func jsonc(t *rapid.T) string {
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	unit := rapid.SampledFrom([]string{"  ", "    ", "\t"}).Draw(t, "unit")
	comment := func(label string) string {
		return rapid.SampledFrom([]string{"", "", "", "/* c */ ", "// c" + eol}).Draw(t, label)
	}
	var object func(depth int, names []string) string
	object = func(depth int, names []string) string {
		lines := rapid.Bool().Draw(t, "lines")
		sep := " "
		if lines {
			sep = eol + strings.Repeat(unit, depth+1)
		}
		var b strings.Builder
		b.WriteString("{" + comment("open"))
		picked := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "names")
		for i, name := range picked {
			if i > 0 {
				b.WriteString("," + comment("comma"))
			}
			b.WriteString(sep + fmt.Sprintf("%q: ", name))
			switch {
			case name == "mcpServers" || name == "hooks":
				b.WriteString(object(depth+1, []string{"other", "more", "x"}))
			case rapid.Bool().Draw(t, "list") && depth > 0:
				b.WriteString(`[ "a",` + comment("list") + ` {"b": 1} ]`)
			default:
				b.WriteString("7")
			}
		}
		if len(picked) > 0 && rapid.Bool().Draw(t, "trailing") {
			b.WriteString(",")
		}
		b.WriteString(comment("close"))
		if lines && len(picked) > 0 {
			b.WriteString(eol + strings.Repeat(unit, depth))
		}
		return b.String() + "}"
	}
	return comment("first") + object(0, []string{"mcpServers", "hooks", "theme", "x"}) + rapid.SampledFrom([]string{"", eol}).Draw(t, "last")
}

var sampleDocument = document{
	verdict: Input{BridgeHome: "/h"}.verdict,
	parts: []part{
		{Path: []string{"mcpServers", "bridge"}, Value: json.RawMessage(`{"command":"/b/bridge","args":["mcp","--agent","claude","--home","/h"]}`)},
		{Path: []string{"hooks", "Stop"}, Element: true, Value: json.RawMessage(`{"hooks":[{"type":"command","command":"/b/bridge hook claude Stop --home /h"}]}`)},
		{Path: []string{"permissions", "allow"}, Element: true, Value: json.RawMessage(`"mcp__bridge"`)},
	},
}

// Whatever a settings file looks like: our parts come in, a second time changes
// nothing, and taking them out gives every byte back.
func TestMSG_11_JSONFilesKeepEveryByteOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := jsonc(t)
		after, err := jsonFile{}.merge([]byte(before), sampleDocument, nil)
		if err != nil {
			t.Fatalf("%s\n%v", before, err)
		}
		for _, p := range sampleDocument.parts {
			found := false
			for _, have := range (jsonFile{}).present(after, p) {
				found = found || sameJSON(have, p.Value)
			}
			if !found {
				t.Fatalf("%v is not in\n%s", p.Path, after)
			}
		}
		twice, err := jsonFile{}.merge(after, sampleDocument, nil)
		if err != nil || !bytes.Equal(twice, after) {
			t.Fatalf("a second time (%v):\n%s\n%s", err, after, twice)
		}
		restored, err := jsonFile{}.strip(after, []byte(before), sampleDocument.parts)
		if err != nil || string(restored) != before {
			t.Fatalf("%v\nbefore: %q\nafter: %q\nback: %q", err, before, after, restored)
		}
	})
}

func TestMSG_11_JSONEditsLookLikeTheFile(t *testing.T) {
	doc := document{
		verdict: Input{}.verdict,
		parts:   []part{{Path: []string{"mcp", "bridge"}, Value: json.RawMessage(`{"command":["/b","mcp"],"enabled":true}`)}},
	}
	tests := []struct{ before, after string }{
		{"", "{\n  \"mcp\": {\n    \"bridge\": {\n      \"command\": [\n        \"/b\",\n        \"mcp\"\n      ],\n      \"enabled\": true\n    }\n  }\n}\n"},
		{
			"{\n\t// mine\n\t\"mcp\": {\n\t\t\"x\": 1, // last\n\t},\n}\n",
			"{\n\t// mine\n\t\"mcp\": {\n\t\t\"x\": 1, // last\n\t\t\"bridge\": {\n\t\t\t\"command\": [\n\t\t\t\t\"/b\",\n\t\t\t\t\"mcp\"\n\t\t\t],\n\t\t\t\"enabled\": true\n\t\t},\n\t},\n}\n",
		},
		{
			"{\"mcp\":{\"x\":1 // last\n}}",
			"{\"mcp\":{\"x\":1, // last\n\"bridge\": {\n      \"command\": [\n        \"/b\",\n        \"mcp\"\n      ],\n      \"enabled\": true\n    }\n}}",
		},
	}
	for _, test := range tests {
		after, err := jsonFile{}.merge([]byte(test.before), doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.after, string(after)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestTOMLTablesAreFound(t *testing.T) {
	const text = `a = 1
b = """
[not.this]
"""
c = [
  [1, 2],
  "]", # [nor.this]
]
[one] # comment
x = '''
[nor.that]'''
# behind one

["two words".'it''s'] 
[[list]]
y = { z = "[" }
[one.two]
`
	valid := strings.Replace(text, `'it''s'`, `'its'`, 1)
	if err := toml.Unmarshal([]byte(valid), &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, table := range scanTables([]byte(valid)) {
		got = append(got, strings.Join(table.path, "/")+"|"+valid[table.start:table.end])
	}
	want := []string{
		"one|[one] # comment\nx = '''\n[nor.that]'''\n",
		"two words/its|[\"two words\".'its'] \n",
		"list|[[list]]\ny = { z = \"[\" }\n",
		"one/two|[one.two]\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMSG_11_TOMLFilesKeepEveryByteOfOthers(t *testing.T) {
	doc := document{
		verdict: Input{BridgeHome: "/h"}.verdict,
		parts: []part{
			{Path: []string{"mcp_servers", "bridge"}, Value: json.RawMessage(`{"command":"/b b/bridge","args":["mcp","--agent","codex","--home","/h"],"tool_timeout_sec":3600}`)},
			{Path: []string{"hooks", "state", `C:\x "y"\hooks.json:stop:0:0`}, Value: json.RawMessage(`{"trusted_hash":"sha256:1"}`), Ours: true},
		},
	}
	for _, before := range []string{"", "a = 1\n", "# only a comment\n", "a = 1\r\n[t]\r\nb = 2\r\n", "[mcp_servers.other]\ncommand = \"x\"\n\n\n"} {
		after, err := tomlFile{}.merge([]byte(before), doc, nil)
		if err != nil {
			t.Fatalf("%q: %v", before, err)
		}
		values, err := parseTOML(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range doc.parts {
			if have, _ := tomlValue(values, p.Path); !sameJSON(have, p.Value) {
				t.Errorf("%v holds %v", p.Path, have)
			}
		}
		twice, err := tomlFile{}.merge(after, doc, nil)
		if err != nil || !bytes.Equal(twice, after) {
			t.Errorf("a second time (%v):\n%s\n%s", err, after, twice)
		}
		restored, err := tomlFile{}.strip(after, nil, doc.parts)
		if err != nil || string(restored) != before {
			t.Errorf("%v\nbefore: %q\nafter: %q\nback: %q", err, before, after, restored)
		}
	}
}

// FuzzScanTables: on whatever is valid TOML, taking out a table of ours that was
// added gives every byte back.
func FuzzScanTables(f *testing.F) {
	for _, seed := range []string{"", "a = 1\n[b]\n", "x = \"\"\"\n[a]\n\"\"\"\"\n", "[[a]]\nb=[\n[1],\n]\n", "a = '\\'\n[t]", "a.b = { c = ']' } # ["} {
		f.Add(seed)
	}
	p := part{Path: []string{"mcp_servers", "bridge"}, Value: json.RawMessage(`{"command":"x"}`)}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseTOML([]byte(text))
		if err != nil || values["mcp_servers"] != nil || strings.Contains(text, tomlBegin) || strings.Contains(text, tomlEnd) {
			return
		}
		if len(text) > 0 && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		doc := document{parts: []part{p}, verdict: Input{}.verdict}
		after, err := tomlFile{}.merge([]byte(text), doc, nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		back, err := tomlFile{}.strip(after, nil, doc.parts)
		if err != nil || string(back) != text {
			t.Fatalf("%v\n%q\n%q", err, text, back)
		}
	})
}

// FuzzMSG_11_JSONSettings: whatever a settings file holds, an edit either fails or keeps
// every byte of it, and a second edit changes nothing.
func FuzzMSG_11_JSONSettings(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "{\n}\n", "\xef\xbb\xbf{\"a\": 1}\r\n", "// c\n{\"a\": [1, /* c */ 2,],}\n", `{"a": 1, "a": 2}`, `{"hooks": {"Stop": []}}`, `{"hooks": {"Stop": null}}`,
		`{"permissions": []}`, "{\"mcpServers\":\r\n\t{\"other\": {}}\r\n}", `[]`, `{"hooks": {"Stop": [ // c` + "\n]}}", `{"\u0061": "\ud800"}`, "{\"a\":1}\n\n// end",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "bridge") || strings.Contains(text, `\u`) || strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" { // a part that looks like ours, or nothing: that becomes {}
			return
		}
		after, err := jsonFile{}.merge([]byte(text), sampleDocument, nil)
		if err != nil {
			return
		}
		twice, err := jsonFile{}.merge(after, sampleDocument, nil)
		if err != nil || !bytes.Equal(twice, after) {
			t.Fatalf("a second time (%v):\n%q\n%q", err, after, twice)
		}
		back, err := jsonFile{}.strip(after, []byte(text), sampleDocument.parts)
		if err != nil || string(back) != text {
			t.Fatalf("%v\nbefore: %q\nafter: %q\nback: %q", err, text, after, back)
		}
	})
}
