package maintain

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"bridge/backend/storage/maintain/check"
)

func TestSTO_01_MailThatWaitsADayForAPairedPCIsSaid(t *testing.T) {
	for waits, want := range map[time.Duration]string{
		24*time.Hour - time.Minute: "",
		24*time.Hour + time.Minute: "a message waits for the paired PC desk, the oldest for 24 h",
		72 * time.Hour:             "a message waits for the paired PC desk, the oldest for 3 d",
	} {
		c := newHome(t)
		sendAcross(t, c, "waiting", start.Add(-waits))
		found := ""
		r := report(t, c)
		for _, finding := range r.Findings {
			if finding.Code == check.OutboxStuck {
				found = finding.Detail
			}
		}
		if found != want || !r.OK {
			t.Errorf("after %s the doctor says %q, ok %v", waits, found, r.OK)
		}
	}
}

// TestSTO_08_WhatIsOnItsWayToAPairedPCComesBackWithASnapshot has the tables about
// paired PCs lost after a full snapshot.
func TestSTO_08_WhatIsOnItsWayToAPairedPCComesBackWithASnapshot(t *testing.T) {
	c := newHome(t)
	sendAcross(t, c, "waiting", start)
	makeDatabase(t, c, "bridge.db", `INSERT INTO remote_inbox (message_id, pc, arrived_at, news, told) VALUES ('in', 'desk-id', 1, 2, 1)`)
	mustBackup(t, c)
	makeDatabase(t, c, "bridge.db", "DELETE FROM remote_outbox; DELETE FROM remote_inbox")
	if r := report(t, c); r.OK || !strings.Contains(strings.Join(findings(r), "\n"), "table-emptied bridge.db") {
		t.Errorf("emptied, the doctor says %v", findings(r))
	}
	if _, err := c.Restores().Restore(t.Context(), newestSnapshot(t, c)); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, c, "SELECT message_id || ' ' || recipient || ' ' || pc || ' ' || state FROM remote_outbox UNION ALL SELECT message_id || ' ' || pc || ' ' || news || ' ' || told FROM remote_inbox"); got != "across desk/api desk-id waiting|in desk-id 2 1" {
		t.Errorf("restored there is %q", got)
	}
}

// rowsOf is what a query of one column says, in its order.
func rowsOf(t *testing.T, c Maintenance, query string) string {
	t.Helper()
	pool, err := sql.Open("sqlite", c.Home.DB())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	all := ""
	if err := pool.QueryRow("SELECT group_concat(c, '|') FROM (SELECT * FROM (SELECT '' AS c) WHERE false UNION ALL " + query + ")").Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}
