package mail

import "testing"

func TestMSG_06_WhatWentToAnEarlierProcess(t *testing.T) {
	var known, unknown, nobody Processes
	known.Add("7:b", 200)
	known.Add("8:c", 100)
	unknown.Add("7:b", 200)
	unknown.Add("", 150)
	var alone, later Processes
	alone.Add("7:b", 200)
	later.Add("7:b", 200)
	later.Add("8:c", 300)
	expecting := func(name string) bool { return name == "9:d" }
	known.Expected, unknown.Expected = expecting, expecting
	for _, tt := range []struct {
		name   string
		here   *Processes
		handed Fact
		want   bool
		awaits bool
	}{
		{"to one of these", &known, Fact{At: 1, Process: "8:c"}, false, false},
		{"to one that is expected", &known, Fact{At: 900, Process: "9:d"}, false, true},
		{"to one that is expected, or is the one that is not known", &unknown, Fact{At: 900, Process: "9:d"}, false, false},
		{"to another", &known, Fact{At: 900, Process: "7:a"}, true, false},
		{"nobody knows to which, before the first began", &known, Fact{At: 99}, true, false},
		{"nobody knows to which, when it began", &known, Fact{At: 100}, false, false},
		{"one of these is not known, before the first began", &unknown, Fact{At: 149, Process: "7:a"}, true, false},
		{"one of these is not known, since", &unknown, Fact{At: 150, Process: "7:a"}, false, false},
		{"before the only one began", &alone, Fact{At: 199}, true, false},
		{"when the only one began", &alone, Fact{At: 200}, false, false},
		{"before the first of two, which came first", &later, Fact{At: 199}, true, false},
		{"between the two", &later, Fact{At: 250}, false, false},
		{"none is here", &nobody, Fact{At: 1, Process: "7:a"}, true, false},
		{"none is here and nobody knows", &nobody, Fact{At: 1}, false, false},
	} {
		if got := tt.here.HandedEarlier(tt.handed); got != tt.want {
			t.Errorf("%s: an earlier process was given it: %t", tt.name, got)
		}
		if got := tt.here.Await(tt.handed); got != tt.awaits {
			t.Errorf("%s: the process is awaited: %t", tt.name, got)
		}
	}
}
