package dashboard

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/prompt"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/config"
)

// Settings is the dashboard's view of config.json; config.Home implements it.
type Settings interface {
	Config() (config.Config, error)
	// UpdateConfig keeps unknown members, and changes nothing if the result is out
	// of bounds.
	UpdateConfig(change func(*config.Config) error) (config.Config, error)
}

var _ Settings = config.Home{}

// Login controls the desktop app's start at login; app.Autostart implements it. It
// is not a setting of config.json: the system's state is in force.
type Login interface {
	Enabled() bool
	// Unavailable returns why it cannot be switched on, or "".
	Unavailable() string
	Set(on bool) error
}

// settings serializes changes: each reads and writes the file.
type settings struct {
	settings Settings // nil without settings
	login    Login    // nil if no desktop app serves the page

	changing *sync.Mutex // shared with all other changers of the file
	changed  func()      // invalidates the shown state
}

// settingsRequest is the body of PUT /api/settings. Omitted members stay unchanged.
type settingsRequest struct {
	Port         *int            `json:"port"`
	AutoWake     *bool           `json:"autoWake"`
	WakeOnDirect *bool           `json:"wakeOnDirect"`
	Desktop      *desktopRequest `json:"desktop"`
	Claude       *claudeRequest  `json:"claude"`
	Mail         *mailRequest    `json:"mail"`
	Login        *bool           `json:"login"`
	Backups      *backupsRequest `json:"backups"`

	AnswerPrompts *prompt.Mode      `json:"answerPrompts"`
	Prove         *config.ProveMode `json:"prove"`
}

type desktopRequest struct {
	Notifications *bool         `json:"notifications"`
	Quiet         *config.Quiet `json:"quiet"` // without a time there are none
}

type backupsRequest struct {
	Auto *bool `json:"auto"`
}

type claudeRequest struct {
	StatusLine *bool `json:"statusLine"`
}

type mailRequest struct {
	Exchange *int `json:"exchange"`
}

// applyTo changes the settings that the request names.
func (s settingsRequest) applyTo(c *config.Config) {
	set(&c.Port, s.Port)
	set(&c.AutoWake, s.AutoWake)
	set(&c.WakeOnDirect, s.WakeOnDirect)
	set(&c.AnswerPrompts, s.AnswerPrompts)
	set(&c.Prove, s.Prove)
	if s.Desktop != nil {
		set(&c.Desktop.Notifications, s.Desktop.Notifications)
		set(&c.Desktop.Quiet, s.Desktop.Quiet)
	}
	if s.Mail != nil {
		set(&c.Mail.Exchange, s.Mail.Exchange)
	}
	if s.Backups != nil {
		set(&c.Backups.Auto, s.Backups.Auto)
	}
	if s.Claude != nil {
		set(&c.Claude.StatusLine, s.Claude.StatusLine)
	}
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// show answers GET /api/settings.
func (s *settings) show(w http.ResponseWriter, r *http.Request) error {
	if s.settings == nil {
		return noSettings()
	}
	config, err := s.settings.Config()
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, s.toDTO(r.Context(), config))
}

// change answers PUT /api/settings with the settings after the change.
func (s *settings) change(w http.ResponseWriter, r *http.Request) error {
	var request settingsRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if s.settings == nil {
		return noSettings()
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	changed, err := s.settings.UpdateConfig(func(c *config.Config) error {
		request.applyTo(c)
		return nil
	})
	if err != nil {
		return err
	}
	if request.Login != nil {
		if err := s.switchLogin(*request.Login); err != nil {
			return err
		}
	}
	if request.AnswerPrompts != nil || request.Desktop != nil || request.Mail != nil {
		s.changed()
	}
	return httpjson.WriteJSON(w, s.toDTO(r.Context(), changed))
}

// switchLogin switches the desktop app's start at login (DSK-04).
func (s *settings) switchLogin(on bool) error {
	if s.login == nil {
		return bridge.Errorf(bridge.Unsupported, "the start at login belongs to the desktop app, which does not serve this page")
	}
	return s.login.Set(on)
}

// hostDesktop is the host of a broker that the desktop app runs.
const hostDesktop = "desktop"

// noticesFrom returns when a page may show browser notices: at, or the end of the quiet
// hours that at lies in. It returns 0 if the switch of the desktop notices is off, if
// the settings cannot be read, and for a page that the desktop app serves, because the
// app shows its own (PGE-14).
func (s *settings) noticesFrom(host string, at time.Time) bridge.UnixMillis {
	if s.settings == nil || host == hostDesktop {
		return 0
	}
	config, err := s.settings.Config()
	if err != nil || !config.Desktop.Notifications {
		return 0
	}
	if end := config.Desktop.Quiet.End(at); !end.IsZero() {
		return end.UnixMilli()
	}
	return at.UnixMilli()
}

func noSettings() error {
	return bridge.Errorf(bridge.Unavailable, "the settings cannot be changed from here: they are in config.json")
}

func (s *settings) toDTO(ctx context.Context, c config.Config) dto.Settings {
	wire := dto.Settings{
		Port: c.Port, AutoWake: c.AutoWake, WakeOnDirect: c.WakeOnDirect, Mail: dto.Mail{Exchange: c.Mail.Exchange},
		Desktop: dto.Desktop{Notifications: c.Desktop.Notifications}, Claude: dto.Claude{StatusLine: c.Claude.StatusLine},
		Backups:       dto.AutoBackups{Auto: c.Backups.Auto, EveryHours: c.Backups.EveryHours},
		AnswerPrompts: string(c.AnswerPrompts), Prove: string(c.Prove),
		ServedPort: servedPort(ctx),
	}
	if quiet := c.Desktop.Quiet; quiet != (config.Quiet{}) {
		wire.Desktop.Quiet = &dto.Quiet{From: quiet.From, To: quiet.To}
	}
	if login := s.login; login != nil {
		wire.Login = &dto.Login{On: login.Enabled(), Why: login.Unavailable()}
	}
	return wire
}

// servedPort returns the port of the request, which the guard has already parsed.
func servedPort(ctx context.Context) int {
	local, _ := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return 0
	}
	_, text, _ := net.SplitHostPort(local.String())
	port, _ := strconv.Atoi(text)
	return port
}
