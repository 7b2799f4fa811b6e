package report

import (
	"testing"

	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestCTX_03_CostsAreOneTable(t *testing.T) {
	for _, tt := range []struct {
		name     string
		sessions []api.SessionCost
		want     string
	}{
		{"none", nil, `
Cost       tokens that Bridge put into each session in 30 days; 4 bytes count as one token
           none yet
`},
		{"one", []api.SessionCost{{
			Name: "web", Total: session.Cost{Tools: 2400, Notes: 300, Mail: 90, Notices: 12},
			Days: []api.DayTokens{{Day: "2026-02-03", Cost: session.Cost{Tools: 1200, Notes: 150, Mail: 40}}, {Day: "2026-02-02", Cost: session.Cost{Tools: 1200, Notes: 150, Mail: 50, Notices: 12}}},
		}}, `
Cost       tokens that Bridge put into each session in 30 days; 4 bytes count as one token

  NAME  DAY         TOOLS  NOTES  MAIL  NOTICES  ALL
  web   all         2400   300    90    12       2802
        2026-02-03  1200   150    40    0        1390
        2026-02-02  1200   150    50    12       1412
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Costs(api.Costs{BytesPerToken: 4, KeptDays: 30, Sessions: tt.sessions}); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
