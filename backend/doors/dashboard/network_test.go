package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/remote"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/network/link"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// linkedPC is a PC of a test, with real links on loopback.
type linkedPC struct {
	*pairing.Peering
	t    *testing.T
	home config.Home
	now  *clock
}

func newLinkedPC(t *testing.T, name string) *linkedPC {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	pc := &linkedPC{t: t, home: home, now: &clock{now: time.Now()}}
	pc.write(fmt.Sprintf(`{"theirs":{"deep":[1]},"network":{"name":%q,"port":0,"mine":"kept"}}`, name))
	pc.Peering, err = pairing.Open(pairing.Options{
		Home: home, Release: "1.2.3", Now: pc.now.Now, Log: slog.New(slog.DiscardHandler), PollInterval: time.Millisecond,
		Settings: func() (config.Network, error) {
			settings, err := home.Config()
			return settings.Network, err
		},
		Forget: func(name string) error {
			_, err := home.UpdateConfig(func(c *config.Config) error {
				c.Network = c.Network.Without(name)
				return nil
			})
			return err
		},
		Capabilities: []string{"remote-jobs-v1"}, Serve: func(remote.PC, remote.Frame) {}, Changed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	pc.Run()
	t.Cleanup(pc.Close)
	return pc
}

func (pc *linkedPC) write(text string) {
	pc.t.Helper()
	if err := os.WriteFile(pc.home.ConfigFile(), []byte(text), 0o600); err != nil {
		pc.t.Fatal(err)
	}
}

func (pc *linkedPC) read() string {
	pc.t.Helper()
	text, err := os.ReadFile(pc.home.ConfigFile())
	if err != nil {
		pc.t.Fatal(err)
	}
	return string(text)
}

// paged is the dashboard of that PC.
func paged(t *testing.T, pc *linkedPC) *world {
	t.Helper()
	return newWorld(t, func(o *Options) {
		o.Peering, o.NetworkSettings, o.Settings, o.Instance.Home = pc.Peering, config.File{Home: pc.home}, pc.home, pc.home.Dir()
	})
}

func (w *world) network() dto.Network {
	w.t.Helper()
	return decode[dto.Network](w.t, w.get("/api/network"))
}

func (w *world) remove(path string) answer {
	w.t.Helper()
	return w.do(w.request(http.MethodDelete, path, "{}"))
}

// pairedPage is desk's page, with laptop paired.
func pairedPage(t *testing.T) (w *world, desk, laptop *linkedPC) {
	t.Helper()
	desk, laptop = newLinkedPC(t, "desk"), newLinkedPC(t, "laptop")
	w = paged(t, desk)
	invited := decode[dto.Network](t, w.post("/api/network/invite", "{}")).Invitation
	if _, err := laptop.Join(t.Context(), invited.Addresses[0], invited.Code); err != nil {
		t.Fatal(err)
	}
	return w, desk, laptop
}

func TestRMT_01_ThePageShowsACodeAndWhoCameWithIt(t *testing.T) {
	desk, laptop := newLinkedPC(t, "desk"), newLinkedPC(t, "laptop")
	w := paged(t, desk)
	before := w.network()
	if before.Name != "desk" || before.ID != "" || before.Invitation != nil || len(before.Peers) != 0 {
		t.Errorf("before: %+v", before)
	}
	opened := desk.now.Now().UnixMilli()
	invited := decode[dto.Network](t, w.post("/api/network/invite", "{}"))
	invitation := invited.Invitation
	if invitation == nil || invitation.State != "open" || len(invitation.Code) != 9 || invitation.Code[4] != '-' || invitation.ExpiresAt-opened != 600_000 || invitation.BurntAt != 3 || !invitation.LocalOnly {
		t.Fatalf("the invitation is %+v", invitation)
	}
	if again := w.network().Invitation; again == nil || again.Code != invitation.Code {
		t.Errorf("read anew it is %+v", again)
	}
	if _, err := laptop.Join(t.Context(), invitation.Addresses[0], "0000-0000"); err == nil {
		t.Fatal("a wrong code was taken")
	}
	if wrong := w.network().Invitation; wrong.WrongCodes != 1 || wrong.State != "open" {
		t.Errorf("after a wrong code it is %+v", wrong)
	}
	if _, err := laptop.Join(t.Context(), invitation.Addresses[0], invitation.Code); err != nil {
		t.Fatal(err)
	}
	after := w.network()
	if after.Invitation.State != "used" || after.Invitation.Code != "" || after.Invitation.Peer == nil || after.Invitation.Peer.Name != "laptop" {
		t.Errorf("used it is %+v", after.Invitation)
	}
	id := func() string { n, _ := laptop.Network(); return n.ID }()
	want := id[:4] + " " + id[4:8] + " " + id[8:12]
	if len(after.Peers) != 1 || after.Peers[0].Name != "laptop" || after.Peers[0].Fingerprint != want || after.ID == "" || len(after.Fingerprint) != 14 {
		t.Errorf("paired: %+v", after)
	}
	if after.Peers[0].May != "laptop may do nothing here." || after.Peers[0].Allowed != (dto.PCAllowed{}) {
		t.Errorf("it may: %+v", after.Peers[0])
	}
}

func TestRMT_01_ThreeWrongCodesBurnWhatThePageShows(t *testing.T) {
	desk, laptop := newLinkedPC(t, "desk"), newLinkedPC(t, "laptop")
	w := paged(t, desk)
	invitation := decode[dto.Network](t, w.post("/api/network/invite", "{}")).Invitation
	for range 3 {
		_, _ = laptop.Join(t.Context(), invitation.Addresses[0], "0000-0000")
	}
	if burnt := w.network().Invitation; burnt.State != "burnt" || burnt.Code != "" || burnt.WrongCodes != 3 {
		t.Errorf("it is %+v", burnt)
	}
}

func TestRMT_01_AnInvitationIsWithdrawnOrExpires(t *testing.T) {
	desk := newLinkedPC(t, "desk")
	w := paged(t, desk)
	decode[dto.Network](t, w.post("/api/network/invite", "{}"))
	if gone := decode[dto.Network](t, w.remove("/api/network/invite")).Invitation; gone.State != "expired" || gone.Code != "" {
		t.Errorf("withdrawn it is %+v", gone)
	}
	decode[dto.Network](t, w.post("/api/network/invite", "{}"))
	desk.now.Advance(10*time.Minute - time.Millisecond)
	if open := w.network().Invitation; open.State != "open" {
		t.Errorf("just before ten minutes it is %+v", open)
	}
	desk.now.Advance(time.Millisecond)
	if invitation := w.network().Invitation; invitation.State != "expired" || invitation.Code != "" {
		t.Errorf("after ten minutes it is %+v", invitation)
	}
}

func TestRMT_01_ACodeIsEnteredOnThePageAndKeptOutOfTheLog(t *testing.T) {
	desk, laptop := newLinkedPC(t, "desk"), newLinkedPC(t, "laptop")
	w := paged(t, desk)
	invitation, err := laptop.Invite()
	if err != nil {
		t.Fatal(err)
	}
	enter := func(address, code string) answer {
		body, _ := json.Marshal(map[string]string{"address": address, "code": code})
		return w.post("/api/network/link", string(body))
	}
	address := invitation.Addresses[0]
	closed := closedPort(t)
	for what, tt := range map[string]struct {
		address, code, says string
		status              int
	}{
		"no code":       {address, "", "8 letters and digits", http.StatusBadRequest},
		"a short code":  {address, "7K3M", "8 letters and digits", http.StatusBadRequest},
		"no address":    {"", invitation.Code, "is no address", http.StatusBadRequest},
		"a wrong code":  {address, "0000-0000", "the code is wrong", http.StatusConflict}, // no 403: that would be this page's own
		"nobody is in":  {closed, invitation.Code, "", http.StatusConflict},
		"a name for it": {"http://desk/", invitation.Code, "is no address", http.StatusBadRequest},
	} {
		a := enter(tt.address, tt.code)
		refused(t, what, a, tt.status)
		if !strings.Contains(a.body, tt.says) {
			t.Errorf("%s: it says %s", what, a.body)
		}
	}
	typed := strings.ToLower(strings.ReplaceAll(invitation.Code, "-", " "))
	paired := decode[dto.Paired](t, enter(address, typed))
	if paired.Name != "laptop" || len(paired.Fingerprint) != 14 || paired.May != "laptop may do nothing here." {
		t.Errorf("paired: %+v", paired)
	}
	for _, code := range []string{invitation.Code, typed, "0000-0000"} {
		if strings.Contains(w.log.String(), code) {
			t.Errorf("the log has the code: %s", w.log)
		}
	}
	if strings.Contains(w.log.String(), "ERROR") {
		t.Errorf("what the other PC said is logged as an error of this one: %s", w.log)
	}
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestRMT_01_UnpairingTakesAwayWhatTheNameWasAllowed(t *testing.T) {
	w, desk, _ := pairedPage(t)
	network := w.network()
	id := network.Peers[0].ID
	plan := decode[dto.NetworkPlan](t, w.put("/api/network/policy", fmt.Sprintf(`{"revision":%q,"peers":[{"id":%q,"messages":true,"files":true}]}`, network.Policy.Revision, id)))
	if !plan.Network.Peers[0].Allowed.Messages {
		t.Fatalf("allowed: %+v", plan.Network.Peers[0])
	}
	refused(t, "an unknown one", w.remove("/api/network/peers/"+strings.Repeat("0", 64)), http.StatusNotFound)
	if after := decode[dto.Network](t, w.remove("/api/network/peers/"+id)); len(after.Peers) != 0 || len(after.Policy.Unpaired) != 0 {
		t.Errorf("afterwards: %+v", after)
	}
	if text := desk.read(); strings.Contains(text, "laptop") || !strings.Contains(text, `"mine"`) || !strings.Contains(text, `"theirs"`) {
		t.Errorf("config.json: %s", text)
	}
	refused(t, "a second time", w.remove("/api/network/peers/"+id), http.StatusNotFound)
}

func TestRMT_01_UnpairingWorksWithDamagedSettings(t *testing.T) {
	w, desk, _ := pairedPage(t)
	id := w.network().Peers[0].ID
	desk.write(`{"network":`)
	if a := w.remove("/api/network/peers/" + id); a.status == http.StatusOK || !strings.Contains(a.body, "paired no more") {
		t.Errorf("unpaired with damaged settings: %d %s", a.status, a.body)
	}
	desk.write(`{}`)
	if after := w.network(); len(after.Peers) != 0 {
		t.Errorf("afterwards: %+v", after.Peers)
	}
}

func TestRMT_06_ThePageAllowsAndTheNextRequestKnows(t *testing.T) {
	w, desk, _ := pairedPage(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	network := w.network()
	body := func(dry bool) string {
		return fmt.Sprintf(`{"revision":%q,"dryRun":%v,"enabled":true,"jobsEnabled":true,"allowRoots":[%q],"agents":["codex","claude"],"peers":[{"id":%q,"jobs":true}]}`,
			network.Policy.Revision, dry, root, network.Peers[0].ID)
	}
	before := desk.read()
	says := "laptop may start codex and claude jobs that edit files below " + root + " (besides these they read the system and their agents' settings, and their agents reach the network); nothing else."
	preview := decode[dto.NetworkPlan](t, w.put("/api/network/policy", body(true)))
	if preview.Saved || desk.read() != before || preview.Network.Peers[0].May != says || len(preview.Changes) != 2 {
		t.Errorf("the preview: %+v", preview)
	}
	if at := slices.IndexFunc(preview.Changes, func(c dto.NetworkChange) bool { return c.Name == "laptop" }); at < 0 || preview.Changes[at].After != says || preview.Changes[at].Before != "laptop may do nothing here." {
		t.Errorf("it says: %+v", preview.Changes)
	}
	if !slices.ContainsFunc(preview.Warnings, func(s string) bool { return strings.Contains(s, "runs as you") }) {
		t.Errorf("it warns of: %q", preview.Warnings)
	}
	if allowed, _ := desk.Network(); allowed.Peers[0].Allowed.Jobs {
		t.Fatal("a preview allowed it")
	}
	saved := decode[dto.NetworkPlan](t, w.put("/api/network/policy", body(false)))
	if !saved.Saved || saved.Network.Peers[0].May != says || saved.Network.Policy.Revision == network.Policy.Revision {
		t.Errorf("saved: %+v", saved)
	}
	allowed, err := desk.Network() // as the next request of that PC finds it
	if err != nil || allowed.Peers[0].Allowed != (api.PCAllowed{Jobs: true}) {
		t.Errorf("allowed now: %+v, %v", allowed.Peers, err)
	}
	var file struct {
		Theirs  map[string][]int
		Network struct {
			Mine, Name string
			Port       *int
			RemoteJobs struct{ AllowRoots, Agents, AllowPeers []string }
			Messages   *struct{}
		}
	}
	if err := json.Unmarshal([]byte(desk.read()), &file); err != nil {
		t.Fatal(err)
	}
	if file.Theirs["deep"][0] != 1 || file.Network.Mine != "kept" || file.Network.Name != "desk" || file.Network.Port == nil || file.Network.Messages != nil {
		t.Errorf("what was there is not as it was: %s", desk.read())
	}
	if got := file.Network.RemoteJobs; !slices.Equal(got.AllowRoots, []string{root}) || !slices.Equal(got.Agents, []string{"codex", "claude"}) || !slices.Equal(got.AllowPeers, []string{"laptop"}) {
		t.Errorf("config.json allows %+v", got)
	}
}

func TestRMT_06_AnEditMadeMeanwhileIsNeverLost(t *testing.T) {
	w, desk, _ := pairedPage(t)
	network := w.network()
	mine := strings.Replace(desk.read(), `"kept"`, `"edited by hand"`, 1)
	desk.write(mine)
	for _, dry := range []bool{true, false} {
		body := fmt.Sprintf(`{"revision":%q,"dryRun":%v,"enabled":true}`, network.Policy.Revision, dry)
		a := w.put("/api/network/policy", body)
		refused(t, "an older revision", a, http.StatusConflict)
		if !strings.Contains(a.body, "changed meanwhile") || desk.read() != mine {
			t.Errorf("it says %s, the file is %s", a.body, desk.read())
		}
	}
	again := fmt.Sprintf(`{"revision":%q,"enabled":true}`, w.network().Policy.Revision)
	decode[dto.NetworkPlan](t, w.put("/api/network/policy", again))
	if text := desk.read(); !strings.Contains(text, "edited by hand") || !strings.Contains(text, `"enabled"`) {
		t.Errorf("the file is %s", text)
	}
}

func TestRMT_06_WhatCannotBeMeantIsRefusedAndNothingIsSaved(t *testing.T) {
	w, desk, _ := pairedPage(t)
	network, before := w.network(), desk.read()
	for member, says := range map[string]string{
		`"allowRoots":["src"]`:                       "absolute",
		`"allowRoots":["/"]`:                         "everything on this PC",
		`"allowRoots":["/no/such/folder"]`:           "there is no folder",
		`"allowRoots":[""]`:                          "missing",
		`"agents":["acp"]`:                           "acp",
		`"agents":["clippy"]`:                        "clippy",
		`"listen":["desk.local"]`:                    "listen",
		`"name":"a b"`:                               "name",
		`"peers":[{"id":"0","jobs":true}]`:           "no paired PC",
		`"peers":[{"jobs":true}]`:                    "no paired PC",
		`"peers":[{"id":"x","everything":true}]`:     "everything",
		`"enabled":"yes"`:                            "enabled",
		`"forget":["laptop"]`:                        "paired by now",
		`"remoteJobs":{"enabled":true}`:              "remoteJobs",
		`"enabled":true,"enabled":false`:             "enabled",
		`"allowRoots":["/tmp"],"allowRoots":["/x"]`:  "allowRoots",
		`"allowRoots":"/tmp"`:                        "allowRoots",
		`"jobsEnabled":null,"peers":[{"id":"none"}]`: "no paired PC",
	} {
		a := w.put("/api/network/policy", fmt.Sprintf(`{"revision":%q,%s}`, network.Policy.Revision, member))
		if a.status < 400 || a.status >= 500 || !strings.Contains(a.body, says) {
			t.Errorf("%s: %d %s, want a refusal that says %q", member, a.status, a.body, says)
		}
	}
	refused(t, "no revision", w.put("/api/network/policy", `{"enabled":true}`), http.StatusBadRequest)
	if desk.read() != before {
		t.Errorf("the file is %s", desk.read())
	}
}

func TestRMT_06_WhatWasAllowedCanBeTakenBackWhateverBecameOfIt(t *testing.T) {
	w, desk, _ := pairedPage(t)
	gone := filepath.Join(t.TempDir(), "unplugged")
	desk.write(fmt.Sprintf(`{"network":{"enabled":true,"port":0,"remoteJobs":{"enabled":true,"allowRoots":[%q],"agents":["codex"],"allowPeers":["laptop","old"]}}}`, gone))
	network := w.network()
	if roots := network.Policy.Roots; len(roots) != 1 || !strings.Contains(roots[0].Warning, "not there now") || !slices.Equal(network.Policy.Unpaired, []string{"old"}) {
		t.Errorf("the policy is %+v", network.Policy)
	}
	body := fmt.Sprintf(`{"revision":%q,"allowRoots":[%q],"peers":[{"id":%q,"jobs":false}],"forget":["old"]}`, network.Policy.Revision, gone, network.Peers[0].ID)
	after := decode[dto.NetworkPlan](t, w.put("/api/network/policy", body)).Network
	if after.Peers[0].Allowed.Jobs || len(after.Policy.Unpaired) != 0 || len(after.Policy.Roots) != 1 {
		t.Errorf("afterwards: %+v", after)
	}
}

// TestHUB_06_ThePageSharesDecisionsWithTheWholeTeam: the switch writes the team's name
// among those with which decisions are shared, and leaves the rest of the file alone.
func TestHUB_06_ThePageSharesDecisionsWithTheWholeTeam(t *testing.T) {
	const settings = `{"theirs":{"deep":[1]},"network":{"enabled":true,"mine":"kept","decisions":{"allowPeers":["desk","@former"],"note":"mine"}}}`
	_, home := withSettings(t, settings)
	file := func() string {
		text, err := os.ReadFile(home.ConfigFile())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	network := api.Network{
		Name: "laptop", ID: strings.Repeat("1", 64), Enabled: true, Team: &api.Team{Team: "crew", Name: "laptop", Hub: strings.Repeat("4", 64), Up: true},
		Peers: []api.PC{{Name: "desk", ID: "d", Paired: true, Member: true}, {Name: "nas", ID: "n", Member: true}, {Name: "out", ID: "o", Paired: true}},
	}
	w := newWorld(t, func(o *Options) {
		o.NetworkSettings, o.Peering = config.File{Home: home}, toldPeering{network: network}
	})
	put := func(members string) answer {
		return w.put("/api/network/policy", fmt.Sprintf(`{"revision":%q,%s}`, w.network().Policy.Revision, members))
	}
	before := w.network()
	if before.Team.Decisions || before.Team.May != remote.TeamWords("crew", true, false) || !slices.Equal(before.Policy.OtherTeams, []string{"former"}) {
		t.Errorf("before: %+v, other teams %q", before.Team, before.Policy.OtherTeams)
	}
	for members, says := range map[string]string{
		`"team":{"team":"former","decisions":true}`: "not in a team",
		`"team":{"decisions":true}`:                 "not in a team",
		`"team":{"team":"crew","messages":true}`:    "messages",
		`"forget":["@crew"]`:                        "by now",
	} {
		if a := put(members); a.status < 400 || a.status >= 500 || !strings.Contains(a.body, says) || file() != settings {
			t.Errorf("%s: %d %s, want a refusal that says %q; the file is %s", members, a.status, a.body, says, file())
		}
	}
	preview := decode[dto.NetworkPlan](t, put(`"dryRun":true,"team":{"team":"crew","decisions":true}`))
	want := []dto.NetworkChange{{Name: "@crew", Before: remote.TeamWords("crew", true, false), After: remote.TeamWords("crew", true, true)}}
	if !slices.Equal(preview.Changes, want) || file() != settings { // one sentence for all of them
		t.Errorf("the preview says %+v, the file is %s", preview.Changes, file())
	}
	saved := decode[dto.NetworkPlan](t, put(`"team":{"team":"crew","decisions":true}`)).Network
	if !saved.Team.Decisions || saved.Peers[1].Allowed.Decisions || !strings.Contains(saved.Peers[1].May, "share decisions") || strings.Contains(saved.Peers[2].May, "share decisions") {
		t.Errorf("saved: %+v %+v", saved.Team, saved.Peers)
	}
	var kept struct {
		Theirs  map[string][]int
		Network struct {
			Mine      string
			Decisions struct {
				AllowPeers []string
				Note       string
			}
		}
	}
	if err := json.Unmarshal([]byte(file()), &kept); err != nil {
		t.Fatal(err)
	}
	if got := kept.Network; kept.Theirs["deep"][0] != 1 || got.Mine != "kept" || got.Decisions.Note != "mine" || !slices.Equal(got.Decisions.AllowPeers, []string{"desk", "@former", "@crew"}) {
		t.Errorf("the file is %s", file())
	}
	sealed := decode[dto.NetworkPlan](t, put(`"team":{"team":"crew","seal":true}`))
	if len(sealed.Changes) != 1 || !strings.Contains(sealed.Changes[0].After, "only that one can read") || !sealed.Network.Team.Seal || !strings.Contains(file(), `{"seal": true}`) {
		t.Errorf("HUB-02 sealed: %+v, the file is %s", sealed, file())
	}
	after := decode[dto.NetworkPlan](t, put(`"team":{"team":"crew","decisions":false},"forget":["@former"]`))
	if len(after.Changes) != 2 || after.Network.Team.Decisions || len(after.Network.Policy.OtherTeams) != 0 || !after.Network.Peers[0].Allowed.Decisions {
		t.Errorf("afterwards: %+v", after)
	}
}

func TestRMT_06_TheNetworkIsForTheOwnersPageAlone(t *testing.T) {
	w, desk, _ := pairedPage(t)
	id := w.network().Peers[0].ID
	before := desk.read()
	for _, tt := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/network", ""},
		{http.MethodPost, "/api/network/invite", "{}"},
		{http.MethodDelete, "/api/network/invite", "{}"},
		{http.MethodPost, "/api/network/link", `{"address":"x","code":"7K3M-QX9T"}`},
		{http.MethodDelete, "/api/network/peers/" + id, "{}"},
		{http.MethodPut, "/api/network/policy", `{"revision":"x","enabled":true}`},
	} {
		what := tt.method + " " + tt.path
		refused(t, what+" without a cookie", w.do(w.request(tt.method, tt.path, tt.body, func(r *http.Request) { r.Header.Del("Cookie") })), http.StatusForbidden)
		refused(t, what+" of another origin", w.do(w.request(tt.method, tt.path, tt.body, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })), http.StatusForbidden)
		refused(t, what+" of another host", w.do(w.request(tt.method, tt.path, tt.body, func(r *http.Request) { r.Host = "evil.example" })), http.StatusForbidden)
		if tt.method == http.MethodGet {
			continue
		}
		refused(t, what+" without the header", w.do(w.request(tt.method, tt.path, tt.body, func(r *http.Request) { r.Header.Del("x-bridge") })), http.StatusForbidden)
		refused(t, what+" with an unknown member", w.do(w.request(tt.method, tt.path, `{"also":1}`)), http.StatusBadRequest)
		refused(t, what+" with half a body", w.do(w.request(tt.method, tt.path, `{`)), http.StatusBadRequest)
	}
	if after := w.network(); len(after.Peers) != 1 || desk.read() != before {
		t.Errorf("afterwards: %+v, %s", after, desk.read())
	}
	none := newWorld(t)
	refused(t, "without links", none.get("/api/network"), http.StatusServiceUnavailable)
	refused(t, "without links", none.post("/api/network/invite", "{}"), http.StatusServiceUnavailable)
}

func TestRMT_06_SettingsAndPolicySavedAtOnceAreBothKept(t *testing.T) {
	w, desk, _ := pairedPage(t)
	done := make(chan answer, 1)
	go func() { done <- w.put("/api/settings", `{"autoWake":true}`) }()
	for {
		a := w.put("/api/network/policy", fmt.Sprintf(`{"revision":%q,"enabled":true}`, w.network().Policy.Revision))
		if a.status == http.StatusOK {
			break
		}
		refused(t, "the other was quicker", a, http.StatusConflict)
	}
	if a := <-done; a.status != http.StatusOK {
		t.Fatalf("settings: %d %s", a.status, a.body)
	}
	settings, err := desk.home.Config()
	if err != nil || !settings.AutoWake || !settings.Network.Enabled {
		t.Errorf("kept: %+v, %v", settings, err)
	}
}

// toldPeering is what a PC tells of its links, for the golden files.
type toldPeering struct {
	network    api.Network
	invitation pairing.InvitationStatus
}

func (p toldPeering) Network() (api.Network, error)       { return p.network, nil }
func (p toldPeering) OwnAddresses() []string              { return []string{"192.168.1.20", "fd00::20"} }
func (p toldPeering) Invite() (pairing.Invitation, error) { return pairing.Invitation{}, nil }
func (p toldPeering) Invited() pairing.InvitationStatus   { return p.invitation }
func (p toldPeering) Withdraw(string)                     {}
func (p toldPeering) Unpair(string) error                 { return nil }
func (p toldPeering) Refresh()                            {}

func (p toldPeering) Join(context.Context, string, string) (link.Pair, error) {
	return link.Pair{ID: strings.Repeat("d", 64), Name: "desk"}, nil
}

func TestTheShapesOfTheNetworkAreThoseOfTheGoldenFiles(t *testing.T) {
	desk, nas := strings.Repeat("d", 64), strings.Repeat("0a", 32)
	at := fixedTime.UnixMilli()
	_, home := withSettings(t, `{"network":{"enabled":true,"listen":["192.168.1.20"],"remoteJobs":{"enabled":true,"allowRoots":["/no/such/src"],"agents":["claude","codex"],"allowPeers":["desk"]},"messages":{"allowPeers":["desk","old"]},"decisions":{"allowPeers":["@crew","@former"]}}}`)
	w := newWorld(t, func(o *Options) {
		o.NetworkSettings = config.File{Home: home}
		o.NetworkLists = func(context.Context) api.NetworkLists {
			return api.NetworkLists{Peers: []api.PCList{
				{
					Name: "desk", ID: desk, Up: true, AsOf: at, Messages: true,
					Sessions: []api.RemoteSession{{Name: "desk/api", Agent: "codex", State: "busy", Cwd: "/src/api", Since: at - 60_000}},
					Jobs:     []api.RemoteJob{{Name: "desk/codex-job-00000001", Agent: "codex", Status: "running", Title: "Count", Cwd: "/src/api", Since: at - 30_000}},
				},
				{Name: "nas", ID: nas, Failed: "there is no link to it now"},
			}}
		}
		o.Peering = toldPeering{
			network: api.Network{
				Name: "laptop", ID: strings.Repeat("1", 64), Enabled: true, Listening: []string{"192.168.1.20:4778"},
				Peers: []api.PC{
					{Name: "desk", ID: desk, Up: true, Since: at, Release: "1.2.3", Capabilities: []string{"remote-jobs-v1"}, Paired: true, Member: true, Before: &api.Before{ID: strings.Repeat("5", 64), Since: at}},
					{Name: "nas", ID: nas, Failed: "nothing answers at 192.168.1.30:4778", Paired: true},
				},
				Team: &api.Team{
					Team: "crew", Name: "laptop", Hub: strings.Repeat("4", 64), Up: true, Since: at, Server: "hub-1", Unheard: []string{"nas"}, Sees: "What it sees.", Carried: "Whether it can read that.",
					Decisions: true, May: "What it may.",
					Watched: at, Dropped: []api.Dropped{{Name: "desk", Why: "replayed", Words: "said by desk once, and sent here again", Count: 3, Last: at, Hostile: true}},
					Waits: &api.Waits{Decisions: 2, Why: "the disk is full", Since: at, Words: "2 decisions for the team wait, because the disk is full"},
				},
			},
			invitation: pairing.InvitationStatus{
				ID: "an id", State: link.InvitationOpen, WrongCodes: 1, ExpiresAt: fixedTime.Add(10 * time.Minute), Code: "7K3M-QX9T", Addresses: []string{"192.168.1.20:4778"},
			},
		}
	})
	golden(t, "network", w.get("/api/network").body)
	golden(t, "network-lists", w.get("/api/network/lists").body)
	golden(t, "network-paired", w.post("/api/network/link", `{"address":"desk","code":"7K3M-QX9T"}`).body)
	revision := w.network().Policy.Revision
	golden(t, "network-plan", w.put("/api/network/policy", fmt.Sprintf(`{"revision":%q,"dryRun":true,"enabled":false,"forget":["old"]}`, revision)).body)
}

func TestRMT_23_WhereNoPCIsReachedNoListIsShown(t *testing.T) {
	refused(t, "the lists", newWorld(t).get("/api/network/lists"), http.StatusServiceUnavailable)
}
