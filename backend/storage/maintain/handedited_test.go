package maintain

import (
	"slices"
	"strings"
	"testing"

	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/check"
)

// The doctor reads what people edit as Bridge does: a byte order mark is nothing, and a
// member that is there twice is named with its lines.
func TestRWM_11_RWM_12_TheDoctorReadsWhatPeopleEdit(t *testing.T) {
	texts := map[string]string{
		"config.json":        `{"port": 4000}`,
		config.AutoWakeStore: `{"version": 1, "sessions": {}}`,
		config.RulesStore:    `{"version": 1, "rules": []}`,
		config.NeedsStore:    `{"version": 1, "putAway": []}`,
		config.PausesStore:   `{"version": 1, "pauses": [{"a": "1", "b": "2", "at": 5}]}`,
	}
	for name, text := range texts {
		twice := "{\n\"theirs\": 1,\n\"theirs\": 2," + strings.TrimPrefix(text, "{")
		for content, want := range map[string]check.Code{text: "", "\ufeff" + text + "\r\n": "", twice: check.JSONShape, "\ufeff" + twice: check.JSONShape, "\ufeff{": check.JSONDamaged} {
			c := newHome(t)
			write(t, c.Home.Dir(), name, content)
			report, err := c.Doctor().Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, finding := range report.Findings {
				if finding.Path != name {
					continue
				}
				found++
				if finding.Code != want || want == check.JSONShape && !strings.Contains(finding.Detail, `the member "theirs" is there twice, on lines 2 and 3`) {
					t.Errorf("%s %q: %+v", name, content, finding)
				}
			}
			if (found > 0) != (want != "") {
				t.Errorf("%s %q: %d findings, want %q", name, content, found, want)
			}
		}
	}
}

// A click on "Put away" is no damage: the doctor reads what was put away as a list of ids,
// as Bridge writes it, and finds what is none.
func TestRWM_11_TheDoctorReadsWhatWasPutAway(t *testing.T) {
	tests := map[string]struct {
		write func(t *testing.T, home config.Home)
		want  check.Code
	}{
		"written by Bridge": {func(t *testing.T, home config.Home) {
			file := config.NeedsFile{Home: home}
			for _, id := range []string{"mail:web:01a2", "job:0e36"} {
				if err := file.SetPutAway(id, true); err != nil {
					t.Fatal(err)
				}
			}
		}, ""},
		"objects in place of ids": {func(t *testing.T, home config.Home) {
			write(t, home.Dir(), config.NeedsStore, `{"version": 1, "putAway": [{"id": "mail:web:01a2"}]}`)
		}, check.JSONShape},
		"no list": {func(t *testing.T, home config.Home) {
			write(t, home.Dir(), config.NeedsStore, `{"version": 1, "putAway": "mail:web:01a2"}`)
		}, check.JSONShape},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newHome(t)
			test.write(t, c.Home)
			report, err := c.Doctor().Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var found []check.Code
			for _, finding := range report.Findings {
				if finding.Path == config.NeedsStore {
					found = append(found, finding.Code)
				}
			}
			if want := slices.DeleteFunc([]check.Code{test.want}, func(c check.Code) bool { return c == "" }); !slices.Equal(found, want) {
				t.Errorf("the doctor found %v in %s, want %v", found, config.NeedsStore, want)
			}
		})
	}
}

// A snapshot holds the pauses of exchanges, and a restore brings them back.
func TestQUI_02_ASnapshotHoldsThePauses(t *testing.T) {
	c := newHome(t)
	file := config.PausesFile{Home: c.Home}
	want := config.Pause{A: "1", B: "2", At: 5}
	if err := file.SetPauses([]config.Pause{want}); err != nil {
		t.Fatal(err)
	}
	set, err := c.Snapshots().Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), config.PausesStore, "{")
	if _, err := c.Restores().Restore(t.Context(), set.Path); err != nil {
		t.Fatal(err)
	}
	if got, err := file.Pauses(); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("after a restore: %+v, %v", got, err)
	}
}
