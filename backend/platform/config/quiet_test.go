package config

import (
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

func TestNED_05_QuietHoursHoldOverMidnight(t *testing.T) {
	for _, tt := range []struct {
		from, to, at string
		want         bool
	}{
		{"22:00", "07:00", "21:59", false},
		{"22:00", "07:00", "22:00", true},
		{"22:00", "07:00", "00:00", true},
		{"22:00", "07:00", "06:59", true},
		{"22:00", "07:00", "07:00", false},
		{"12:00", "13:30", "13:29", true},
		{"12:00", "13:30", "13:30", false},
		{"12:00", "13:30", "11:59", false},
		{"08:00", "08:00", "08:00", false},
		{"", "", "03:00", false},
	} {
		at, err := time.Parse(clockForm, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Quiet{tt.from, tt.to}).Has(at); got != tt.want {
			t.Errorf("%s to %s at %s: %t", tt.from, tt.to, tt.at, got)
		}
	}
}

func TestNED_05_AnHourThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []Quiet{{"22:00", ""}, {"", "07:00"}, {"24:00", "07:00"}, {"7:00", "08:00"}, {"22", "7"}, {"evening", "morning"}} {
		if err := bad.check(); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, good := range []Quiet{{}, {"22:00", "07:00"}} {
		if err := good.check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

func TestNED_05_QuietHoursEnd(t *testing.T) {
	const form = "2006-01-02 15:04"
	for _, tt := range []struct{ from, to, at, want string }{
		{"22:00", "07:00", "2026-03-01 23:30", "2026-03-02 07:00"},
		{"22:00", "07:00", "2026-03-01 06:59", "2026-03-01 07:00"},
		{"12:00", "13:30", "2026-03-01 12:00", "2026-03-01 13:30"},
		{"22:00", "00:00", "2026-03-01 22:30", "2026-03-02 00:00"},
		{"22:00", "07:00", "2026-03-01 12:00", ""},
		{"", "", "2026-03-01 12:00", ""},
	} {
		at, err := time.Parse(form, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if end := (Quiet{tt.from, tt.to}).End(at); !end.IsZero() {
			got = end.Format(form)
		}
		if got != tt.want {
			t.Errorf("%s to %s at %s ends at %q, want %q", tt.from, tt.to, tt.at, got, tt.want)
		}
	}
}
