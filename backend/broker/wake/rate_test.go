package wake

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
)

func TestQUI_03_WhenMailOfAnAgentMayWake(t *testing.T) {
	limits := func(perHour int, between time.Duration) session.Policy {
		return session.Policy{WakesPerHour: perHour, BetweenWakes: between}
	}
	for _, tt := range []struct {
		name   string
		policy session.Policy
		woken  []int64
		now    int64
		want   int64
	}{
		{"the first wake is at once", limits(1, time.Minute), nil, 5, 5},
		{"within the minute", limits(30, time.Minute), []int64{10}, 20, 10 + minute},
		{"at the end of the minute", limits(30, time.Minute), []int64{10}, 10 + minute, 10 + minute},
		{"after the minute", limits(30, time.Minute), []int64{10}, 11 + minute, 11 + minute},
		{"the last one counts", limits(30, time.Minute), []int64{10, 20}, 30, 20 + minute},
		{"as many as allowed in the hour", limits(2, 0), []int64{10, 20}, 30, 10 + hour},
		{"one fewer", limits(3, 0), []int64{10, 20}, 30, 30},
		{"the oldest of them is an hour ago", limits(2, 0), []int64{10, 20}, 10 + hour, 10 + hour},
		{"two at the same time", limits(2, 0), []int64{10, 10}, 30, 10 + hour},
		{"an older one does not count", limits(2, 0), []int64{10, 20, 30}, 40, 20 + hour},
		{"the later of both limits", limits(2, 2*time.Hour), []int64{10, 20}, 30, 20 + 2*hour},
		{"no limit in the hour", limits(0, time.Minute), []int64{10, 20}, 30, 20 + minute},
		{"no limit at all", limits(0, 0), []int64{10, 30}, 30, 30},
		{"the clock was set back", limits(1, time.Minute), []int64{10 * hour}, 30, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r Rate
			for _, at := range tt.woken {
				r.Woken(tt.policy, at)
			}
			if got := r.Next(tt.policy, tt.now); got != tt.want {
				t.Errorf("next %d, want %d", got, tt.want)
			}
		})
	}
}

func TestQUI_03_AWakeWithoutEffectDoesNotCount(t *testing.T) {
	policy := session.Policy{WakesPerHour: 2, BetweenWakes: time.Minute}
	var r Rate
	if r.Last() != 0 {
		t.Errorf("the last of none is %d", r.Last())
	}
	r.Woken(policy, 10)
	r.Woken(policy, 20)
	if r.Failed(0); r.Last() != 20 || r.Next(policy, 30) != 10+hour {
		t.Errorf("a wake that no limit counts has failed: last %d, next %d", r.Last(), r.Next(policy, 30))
	}
	if r.Failed(20); r.Last() != 10 || r.Next(policy, 30) != 10+minute {
		t.Errorf("the last has failed: last %d, next %d", r.Last(), r.Next(policy, 30))
	}
	if r.Failed(10); r.Next(policy, 30) != 30 {
		t.Errorf("all have failed: next %d", r.Next(policy, 30))
	}
}

func TestQUI_03_AfterTheClockWasSetBackWakesCountAnew(t *testing.T) {
	policy := session.Policy{WakesPerHour: 2, BetweenWakes: time.Minute}
	var r Rate
	r.Woken(policy, 10*hour)
	r.Woken(policy, 10)
	if got := r.Next(policy, 20); got != 10+minute {
		t.Errorf("next %d, want %d", got, 10+minute)
	}
}

func TestQUI_03_OnlyWakesThatMayCountAreKept(t *testing.T) {
	for perHour, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		var r Rate
		for now := range int64(10) {
			r.Woken(session.Policy{WakesPerHour: perHour}, now)
		}
		if len(r.woken) != want || r.Last() != 9 {
			t.Errorf("%d an hour: %v are kept", perHour, r.woken)
		}
	}
}

func TestQUI_03_TheReason(t *testing.T) {
	var r Rate
	r.Woken(session.Policy{}, 0)
	for _, tt := range []struct {
		at, now int64
		want    string
	}{
		{minute, 20 * second, "waits: web was woken 20 s ago; next wake in 40 s"},
		{minute, minute - 1, "waits: web was woken 59 s ago; next wake in 1 s"},
		{30 * minute, 20 * minute, "waits: web was woken 20 min ago; next wake in 10 min"},
	} {
		if got := r.Reason("web", tt.at, tt.now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// Whenever messages come to a session that is always idle again at once: it is woken for
// the first at once and for the others within the limits, and no message waits for longer
// than they say.
func TestQUI_03_WakesStayWithinTheLimitsAndNoMessageIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := session.Policy{
			WakesPerHour: rapid.IntRange(0, 5).Draw(t, "per hour"),
			BetweenWakes: time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds between")) * time.Second,
		}
		gaps := rapid.SliceOfN(rapid.Int64Range(0, 10*minute), 1, 60).Draw(t, "gaps")
		var r Rate
		var woken, waiting []int64 // times of wakes, and when the waiting messages came
		wake := func(now int64) {
			woken, waiting = append(woken, now), nil
			r.Woken(policy, now)
		}
		now := 5 * hour
		for _, gap := range gaps {
			// The broker looks at the mail when a wake may follow the last one.
			for len(waiting) > 0 && r.Next(policy, now) <= now+gap {
				gap -= r.Next(policy, now) - now
				now = r.Next(policy, now)
				for _, came := range waiting {
					if longest := max(hour, policy.BetweenWakes.Milliseconds()); now-came > longest {
						t.Fatalf("a message of %d waits until %d", came, now)
					}
				}
				wake(now)
			}
			now += gap
			waiting = append(waiting, now)
			if r.Next(policy, now) <= now {
				wake(now)
			}
		}
		if woken[0] != 5*hour+gaps[0] {
			t.Fatalf("the first wake is at %d, the first message at %d", woken[0], 5*hour+gaps[0])
		}
		for i, at := range woken {
			if i > 0 && at-woken[i-1] < policy.BetweenWakes.Milliseconds() {
				t.Fatalf("wakes at %d and %d", woken[i-1], at)
			}
			if n := policy.WakesPerHour; n > 0 && i >= n && at-woken[i-n] < hour {
				t.Fatalf("%d wakes from %d to %d", n+1, woken[i-n], at)
			}
		}
		if next := r.Next(policy, now); len(waiting) > 0 && next-now > max(hour, policy.BetweenWakes.Milliseconds()) {
			t.Fatalf("the rest waits until %d", next)
		}
	})
}

func TestQUI_03_TheLimitsOfWakesAreForMailThatAgentsWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		from bridge.Address
		want bool
	}{
		{"a session", bridge.Address{ID: "p1", Name: "web", Agent: bridge.Codex}, true},
		{"a session of another PC", bridge.Address{ID: "desk/web", Name: "desk/web", Agent: bridge.Claude}, true},
		{"the owner", bridge.OwnerAddress(), false},
		{"Bridge for a job", bridge.Address{ID: "codex-job-00000001", Name: "codex-job-00000001", Agent: bridge.Codex}, false},
		{"Bridge for a job on another PC", bridge.Address{ID: "desk/codex-job-00000001", Name: "desk/codex-job-00000001", Agent: bridge.Codex}, false},
		{"the agent of a job", bridge.Address{ID: "p2", Name: "codex-job-00000001", Agent: bridge.Codex}, true},
	} {
		if got := IsOfAgent(bridge.Message{From: tt.from}); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
