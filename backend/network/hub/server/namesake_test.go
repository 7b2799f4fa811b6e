package server

import (
	"fmt"
	"strings"
	"testing"

	"bridge/backend/network/link"
)

// TestHUB_03_APCUnderTheNameOfARemovedOneIsSaid: also after the hub was started anew. A PC
// that joins again is itself.
func TestHUB_03_APCUnderTheNameOfARemovedOneIsSaid(t *testing.T) {
	h := openHub(t, nil)
	h.enrol("anna")
	bert, carl := h.enrol("bert"), h.enrol("carl")
	for _, name := range []string{"bert", "carl"} {
		if _, err := h.dial().Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := carl.joinBy(h.Addresses()[0], h.dialInvite()); err != nil {
		t.Fatal(err)
	}
	other := h.enrol("bert")
	h.log.await(t, "a PC joined under the name of another one that was removed", "pc=bert", other.identity.ID, bert.identity.ID)
	says := func(h *hub) {
		t.Helper()
		client := h.dial()
		members, err := client.PCs(t.Context())
		if err != nil || len(members) != 3 {
			t.Fatalf("the team is %+v, %v", members, err)
		}
		status, err := client.Status(t.Context())
		if err != nil || len(status.Namesakes) != 1 {
			t.Fatalf("status is %+v, %v", status, err)
		}
		for _, m := range append(members, status.Namesakes...) {
			if (m.Before != nil) != (m.ID == other.identity.ID) {
				t.Errorf("it says %+v of %s", m.Before, m.Name)
			}
			if m.Before == nil {
				continue
			}
			words := fmt.Sprintf("bert (%s) is another PC than the bert (%s) that was removed on 2", link.Fingerprint(other.identity.ID), link.Fingerprint(bert.identity.ID))
			if m.Before.ID != bert.identity.ID || m.Before.RemovedAt < m.EnrolledAt-3_600_000 || m.Before.RemovedAt > m.EnrolledAt || !strings.HasPrefix(m.BeforeWords(), words) {
				t.Errorf("it says %+v: %s", m.Before, m.BeforeWords())
			}
		}
	}
	says(h)
	says(reopen(h))
}
