package decision

import (
	"fmt"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
)

// placed makes revisions of one topic as they were recorded, the oldest first.
func placed(t *testing.T, recorded ...OrderedRevision) map[string][]OrderedRevision {
	t.Helper()
	for i := range recorded {
		recorded[i].Topic, recorded[i].Place, recorded[i].Scope = "db", int64(i+1), AllSessions()
	}
	slices.Reverse(recorded)
	return Topics(NewestFirst(recorded))
}

func revised(id, author string, createdAt, sequence int64) OrderedRevision {
	return OrderedRevision{Revision: Revision{ID: id, Author: bridge.Address{Name: author}, CreatedAt: createdAt}, Sequence: sequence}
}

func TestHUB_06_TheStreamsOrderIsThatOfATopic(t *testing.T) {
	tests := []struct {
		name     string
		recorded []OrderedRevision
		want     string // the oldest first, each with what it replaced
	}{
		{"the times count without a stream", []OrderedRevision{revised("a", "api", 20, 0), revised("b", "desk/api", 10, 0)}, "[b: a:]"},
		{"the stream counts before the times", []OrderedRevision{revised("a", "api", 20, 1), revised("b", "desk/api", 10, 2)}, "[a: b:a]"},
		{"and before the order in which they came", []OrderedRevision{revised("a", "api", 20, 2), revised("b", "desk/api", 30, 1)}, "[b: a:b]"},
		{"what the stream lacks comes after what is older", []OrderedRevision{revised("b", "desk/api", 10, 3), revised("c", "desk/api", 40, 4), revised("a", "api", 20, 0)}, "[b: a: c:a]"},
		{"and after all that comes before that in the stream", []OrderedRevision{revised("b", "desk/api", 90, 3), revised("c", "desk/api", 10, 4), revised("a", "api", 20, 0)}, "[b: c:b a:]"},
		{"what only this PC decided is as it was recorded", []OrderedRevision{revised("a", "api", 20, 2), revised("b", "api", 10, 1)}, "[a: b:]"},
	}
	for _, tt := range tests {
		t.Run("HUB-06 "+tt.name, func(t *testing.T) {
			var got []string
			all := placed(t, tt.recorded...)["db"]
			for i, rev := range all {
				before := ""
				if rev.Supersedes != nil {
					before = *rev.Supersedes
				}
				got = append(got, rev.ID+":"+before)
				if rev.Current != (i == len(all)-1) {
					t.Errorf("%s is current: %v", rev.ID, rev.Current)
				}
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("in order %v, want %s", got, tt.want)
			}
		})
	}
}

func TestHUB_06_WhatWasDecidedAtTheSameTime(t *testing.T) {
	follows := func(p OrderedRevision, id string) OrderedRevision { p.Follows = id; return p }
	tests := []struct {
		name   string
		stream []OrderedRevision
		beside string // of each, the one of this PC
	}{
		{"each knew the one before", []OrderedRevision{revised("a", "api", 1, 1), follows(revised("b", "desk/api", 2, 2), "a")}, "[- -]"},
		{"neither knew the other, this PC's first", []OrderedRevision{revised("a", "api", 1, 1), revised("b", "desk/api", 2, 2)}, "[- a]"},
		{"neither knew the other, this PC's last", []OrderedRevision{revised("b", "desk/api", 2, 1), revised("a", "api", 1, 2)}, "[a -]"},
		{"two others", []OrderedRevision{revised("b", "desk/api", 2, 1), revised("c", "tower/api", 1, 2)}, "[- -]"},
		{"one owner alone", []OrderedRevision{revised("a", "api", 1, 1), revised("a2", "api", 2, 2)}, "[- -]"},
	}
	for _, tt := range tests {
		t.Run("HUB-06 "+tt.name, func(t *testing.T) {
			var got []string
			for i, rev := range tt.stream {
				beside := "-"
				if own := ConcurrentOwn(tt.stream, i); own != nil && rev.IsImported() {
					beside = own.ID
				}
				got = append(got, beside)
			}
			if fmt.Sprint(got) != tt.beside {
				t.Errorf("beside each is %v, want %s", got, tt.beside)
			}
		})
	}
}

func TestHUB_06_WhatGoesToTheTeam(t *testing.T) {
	topic := placed(t, revised("old", "api", 10, 0), revised("newer", "api", 50, 0), revised("b", "desk/api", 20, 7), revised("late", "api", 15, 0))["db"]
	private := revised("private", "api", 60, 0)
	private.Topic, private.Scope, private.Place = "db", ProjectOf("/src"), 5
	topic = append(topic, private)
	var got []string
	for _, own := range ForTeam(topic, 2) { // old and newer were recorded before this PC took part
		got = append(got, own.ID+" after "+own.Follows)
	}
	slices.Sort(got)
	if want := []string{"late after newer", "newer after old"}; !slices.Equal(got, want) {
		t.Errorf("to the team goes %q, want %q", got, want)
	}
}

func TestHUB_06_WhatEachDecisionForTheTeamFollows(t *testing.T) {
	scoped := func(p OrderedRevision) OrderedRevision { p.Scope = ProjectOf("/src"); return p }
	unread := func(p OrderedRevision) OrderedRevision {
		p.Unread = Unreadable{Why: "its scope cannot be read"}
		return p
	}
	for _, tt := range []struct {
		name     string
		recorded []OrderedRevision
		since    int64
		want     string
	}{
		{"the last of this PC before it", []OrderedRevision{revised("a", "api", 10, 0), revised("b", "api", 20, 0)}, 0, "[a: b:a]"},
		{"the last of the stream before it", []OrderedRevision{revised("a", "api", 10, 1), revised("b", "desk/api", 20, 2), revised("c", "api", 30, 0)}, 0, "[c:b]"},
		{"not one of another PC that the stream lacks", []OrderedRevision{revised("a", "api", 10, 1), revised("b", "desk/api", 20, 0), revised("c", "api", 30, 0)}, 0, "[c:a]"},
		{"not one for a project", []OrderedRevision{scoped(revised("a", "api", 10, 0)), revised("b", "api", 30, 0)}, 0, "[b:]"},
		{"not one that cannot be read", []OrderedRevision{unread(revised("a", "api", 10, 0)), revised("b", "api", 30, 0)}, 0, "[b:]"},
		{"the last before this PC took part, decided later by another", []OrderedRevision{revised("a", "api", 10, 0), revised("b", "desk/api", 20, 1)}, 1, "[]"},
		{"the first after it took part", []OrderedRevision{revised("a", "api", 10, 0), revised("b", "desk/api", 20, 1)}, 0, "[a:]"},
		{"decided later by another, which the stream lacks", []OrderedRevision{revised("a", "api", 10, 0), revised("b", "desk/api", 20, 0)}, 1, "[a:]"},
		{"decided earlier by another", []OrderedRevision{revised("a", "api", 30, 0), revised("b", "desk/api", 20, 1)}, 1, "[a:]"},
		{"decided later by this PC, in the stream", []OrderedRevision{revised("a", "api", 10, 0), revised("b", "api", 20, 1)}, 1, "[a:]"},
	} {
		for i := range tt.recorded {
			if tt.recorded[i].Place = int64(i + 1); tt.recorded[i].Scope.Project == "" {
				tt.recorded[i].Scope = AllSessions()
			}
		}
		got := []string{}
		for _, own := range ForTeam(tt.recorded, tt.since) {
			got = append(got, own.ID+":"+own.Follows)
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestHUB_06_TheStreamHasWhatHasASequence(t *testing.T) {
	all := []OrderedRevision{revised("a", "api", 10, 1), revised("b", "api", 20, 0), revised("c", "desk/api", 30, 2)}
	got := InStream(all)
	if len(got) != 2 || got[0].ID != "a" || got[1].ID != "c" || all[1].ID != "b" {
		t.Errorf("%+v of %+v", got, all)
	}
}
