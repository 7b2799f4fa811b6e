package dashboard

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/config"
)

// withSettings is a world whose config.json holds text, "" for none.
func withSettings(t *testing.T, text string) (*world, config.Home) {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(home.ConfigFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newWorld(t, func(o *Options) { o.Settings = home }), home
}

func (w *world) put(path, body string) answer {
	w.t.Helper()
	return w.do(w.request(http.MethodPut, path, body))
}

func TestDSK_06_SettingsAreShownAndChangedAndUnknownOnesSurvive(t *testing.T) {
	w, home := withSettings(t, `{"port":4800,"theirs":{"deep":[1]},"desktop":{"notifications":true,"x":1}}`)
	before := decode[dto.Settings](t, w.get("/api/settings"))
	if before.Port != 4800 || before.AutoWake || !before.WakeOnDirect || !before.Desktop.Notifications || before.ServedPort == 0 {
		t.Errorf("before: %+v", before)
	}
	after := decode[dto.Settings](t, w.put("/api/settings", `{"port":4801,"autoWake":true,"desktop":{"notifications":false}}`))
	if after.Port != 4801 || !after.AutoWake || !after.WakeOnDirect || after.Desktop.Notifications || after.ServedPort != before.ServedPort {
		t.Errorf("after: %+v", after)
	}
	text, err := os.ReadFile(home.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{`"theirs"`, `"deep"`, `"x"`, "4801"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%s is gone from %s", kept, text)
		}
	}
	if strings.Contains(string(text), "wakeOnDirect") {
		t.Errorf("what was never set was written: %s", text)
	}
}

func TestPGE_14_ThePageIsToldWhenItMayShowNotices(t *testing.T) {
	at := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	now, morning := at.UnixMilli(), at.Add(8*time.Hour).UnixMilli()
	for _, tt := range []struct {
		name, config, host string
		want               bridge.UnixMillis
	}{
		{"switched on", `{"desktop":{"notifications":true}}`, "serve", now},
		{"switched off", `{"desktop":{"notifications":false}}`, "serve", 0},
		{"quiet hours", `{"desktop":{"notifications":true,"quiet":{"from":"22:00","to":"07:00"}}}`, "serve", morning},
		{"the desktop app serves the page", `{"desktop":{"notifications":true}}`, "desktop", 0},
		{"damaged settings", `{"desktop":`, "serve", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, home := withSettings(t, tt.config)
			if got := (&settings{settings: home}).noticesFrom(tt.host, at); got != tt.want {
				t.Errorf("notices from %d, want %d", got, tt.want)
			}
		})
	}
}

func TestPGE_14_ASwitchOfTheNoticesIsShownAtOnce(t *testing.T) {
	w, _ := withSettings(t, `{"desktop":{"notifications":true}}`)
	if state := decode[dto.State](t, w.get("/api/state")); state.NoticesFrom == 0 {
		t.Fatal("the state allows no notices")
	}
	w.put("/api/settings", `{"desktop":{"notifications":false}}`)
	if state := decode[dto.State](t, w.get("/api/state")); state.NoticesFrom != 0 {
		t.Errorf("the state allows notices from %d after they were switched off", state.NoticesFrom)
	}
}

func TestDSK_06_EachSettingChangesAloneAndIsKept(t *testing.T) {
	w, home := withSettings(t, "")
	want := decode[dto.Settings](t, w.get("/api/settings"))
	quiet := w.put("/api/settings", `{"desktop":{"quiet":{"from":"22:00","to":"07:00"}}}`)
	if got := decode[dto.Settings](t, quiet).Desktop; got.Quiet == nil || *got.Quiet != (dto.Quiet{From: "22:00", To: "07:00"}) {
		t.Errorf("NED-05: quiet hours are %+v", got)
	}
	if config, err := home.Config(); err != nil || config.Desktop.Quiet.From != "22:00" {
		t.Errorf("NED-05: config.json has %+v, %v", config.Desktop.Quiet, err)
	}
	none := w.put("/api/settings", `{"desktop":{"quiet":{"from":"","to":""}}}`)
	if diff := cmp.Diff(want, decode[dto.Settings](t, none)); diff != "" {
		t.Errorf("NED-05: without quiet hours:\n%s", diff)
	}
	for body, change := range map[string]func(*dto.Settings){
		`{"port":4801}`:                       func(s *dto.Settings) { s.Port = 4801 },
		`{"autoWake":true}`:                   func(s *dto.Settings) { s.AutoWake = true },
		`{"wakeOnDirect":false}`:              func(s *dto.Settings) { s.WakeOnDirect = false },
		`{"desktop":{"notifications":false}}`: func(s *dto.Settings) { s.Desktop.Notifications = false },
		`{"desktop":{}}`:                      func(*dto.Settings) {},
		`{"backups":{"auto":true}}`:           func(s *dto.Settings) { s.Backups.Auto = true }, // DOC-11
		`{"claude":{"statusLine":false}}`:     func(s *dto.Settings) { s.Claude.StatusLine = false },
		`{"mail":{"exchange":20}}`:            func(s *dto.Settings) { s.Mail.Exchange = 20 },
	} {
		change(&want)
		if diff := cmp.Diff(want, decode[dto.Settings](t, w.put("/api/settings", body))); diff != "" {
			t.Errorf("%s:\n%s", body, diff)
		}
	}
	again := newWorld(t, func(o *Options) { o.Settings = home })
	settings := decode[dto.Settings](t, again.get("/api/settings"))
	settings.ServedPort = want.ServedPort
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Errorf("what was kept:\n%s", diff)
	}
}

func TestDSK_06_BadSettingsAreRefusedByNameAndChangeNothing(t *testing.T) {
	w, home := withSettings(t, "")
	for body, name := range map[string]string{
		`{"port":70000}`:                  "port",
		`{"port":-1}`:                     "port",
		`{"port":"4777"}`:                 "port",
		`{"autoWake":"yes"}`:              "autoWake",
		`{"desktop":{"notifications":1}}`: "notifications",
		`{"desktop":{"quiet":{"from":"10 pm","to":"07:00"}}}`: "desktop.quiet.from",
		`{"desktop":{"quiet":{"from":"22:00","to":""}}}`:      "desktop.quiet.to",
		`{"desktop":{"sound":true}}`:                          "sound",
		`{"mail":{"exchange":-1}}`:                            "mail.exchange must be between 0 and 1000, not -1",
		`{"claude":{"statusLine":"on"}}`:                      "statusLine",
		`{"backups":{"auto":1}}`:                              "auto",
		`{"theme":"dark"}`:                                    "theme",
		`{"autoWake":true,"port":1,"port":70000}`:             "port",
	} {
		a := w.put("/api/settings", body)
		refused(t, body, a, http.StatusBadRequest)
		if !strings.Contains(a.body, name) {
			t.Errorf("%s: %s does not name %s", body, a.body, name)
		}
	}
	if _, err := os.Stat(home.ConfigFile()); !os.IsNotExist(err) {
		t.Errorf("a refused change wrote settings: %v", err)
	}
}

func TestDSK_06_DamagedSettingsAreNamedAndKept(t *testing.T) {
	w, home := withSettings(t, `{"port":`)
	for _, a := range []answer{w.get("/api/settings"), w.put("/api/settings", `{"port":4801}`)} {
		refused(t, "damaged settings", a, http.StatusBadRequest)
	}
	if text, _ := os.ReadFile(home.ConfigFile()); string(text) != `{"port":` {
		t.Errorf("the damaged file was changed: %s", text)
	}
	none := newWorld(t)
	refused(t, "no settings at all", none.get("/api/settings"), http.StatusServiceUnavailable)
	refused(t, "no settings to change", none.put("/api/settings", `{"autoWake":true}`), http.StatusServiceUnavailable)
}

// login is the switch of a desktop app.
type login struct {
	on  bool
	err error
}

func (l *login) Enabled() bool       { return l.on }
func (l *login) Unavailable() string { return "" }

func (l *login) Set(on bool) error {
	if l.err == nil {
		l.on = on
	}
	return l.err
}

func TestDSK_04_TheStartAtLoginIsSwitchedFromThePage(t *testing.T) {
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	start := &login{}
	w := newWorld(t, func(o *Options) { o.Settings, o.Login = home, start })
	if before := decode[dto.Settings](t, w.get("/api/settings")); before.Login == nil || before.Login.On {
		t.Errorf("before: %+v", before.Login)
	}
	if after := decode[dto.Settings](t, w.put("/api/settings", `{"login":true}`)); after.Login == nil || !after.Login.On || !start.on {
		t.Errorf("after: %+v, in force %v", after.Login, start.on)
	}
	if _, err := os.Stat(home.ConfigFile()); !os.IsNotExist(err) {
		t.Errorf("the start at login was stored: %v", err)
	}
	start.err = bridge.Errorf(bridge.Storage, "no room")
	refused(t, "a switch that fails", w.put("/api/settings", `{"login":false}`), http.StatusServiceUnavailable)

	elsewhere, _ := withSettings(t, "")
	if shown := decode[dto.Settings](t, elsewhere.get("/api/settings")); shown.Login != nil {
		t.Errorf("without a desktop app: %+v", shown.Login)
	}
	refused(t, "no desktop app", elsewhere.put("/api/settings", `{"login":true}`), http.StatusNotImplemented)
}

func TestTheShapeOfTheSettingsIsThatOfTheGoldenFile(t *testing.T) {
	w, _ := withSettings(t, "")
	body := w.get("/api/settings").body
	_, port, _ := strings.Cut(w.server.URL, "127.0.0.1:")
	golden(t, "settings", strings.Replace(body, `"servedPort":`+port, `"servedPort":4777`, 1))
}
