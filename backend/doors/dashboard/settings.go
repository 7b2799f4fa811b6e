package dashboard

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/core/prompt"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/config"
)

// Settings is what the dashboard asks about config.json; config.Home is one.
type Settings interface {
	Config() (config.Config, error)
	// UpdateConfig keeps members that it does not know, and changes nothing when
	// the result is out of bounds.
	UpdateConfig(change func(*config.Config) error) (config.Config, error)
}

var _ Settings = config.Home{}

// Login starts the desktop app when its owner logs in; app.Autostart is one. It is
// no setting of config.json: what the system says is in force.
type Login interface {
	Enabled() bool
	// Unavailable says why it cannot be switched on, "" where it can.
	Unavailable() string
	Set(on bool) error
}

// settings lets one change be made at a time: each reads and writes the file.
type settings struct {
	of    Settings // nil where there are none
	login Login    // nil where no desktop app serves the page

	changing *sync.Mutex // shared with whoever else does
	changed  func()      // has what is shown built anew
}

// settingsRequest is the body of PUT /api/settings. What is left out stays.
type settingsRequest struct {
	Port         *int            `json:"port"`
	AutoWake     *bool           `json:"autoWake"`
	WakeOnDirect *bool           `json:"wakeOnDirect"`
	Desktop      *desktopRequest `json:"desktop"`
	Claude       *claudeRequest  `json:"claude"`
	Login        *bool           `json:"login"`

	AnswerPrompts *prompt.Mode `json:"answerPrompts"`
}

type desktopRequest struct {
	Notifications *bool         `json:"notifications"`
	Quiet         *config.Quiet `json:"quiet"` // without a time there are none
}

type claudeRequest struct {
	StatusLine *bool `json:"statusLine"`
}

// applyTo changes what the request names.
func (s settingsRequest) applyTo(c *config.Config) {
	set(&c.Port, s.Port)
	set(&c.AutoWake, s.AutoWake)
	set(&c.WakeOnDirect, s.WakeOnDirect)
	set(&c.AnswerPrompts, s.AnswerPrompts)
	if s.Desktop != nil {
		set(&c.Desktop.Notifications, s.Desktop.Notifications)
		set(&c.Desktop.Quiet, s.Desktop.Quiet)
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
	if s.of == nil {
		return noSettings()
	}
	config, err := s.of.Config()
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, s.shape(r.Context(), config))
}

// change answers PUT /api/settings with the settings after the change.
func (s *settings) change(w http.ResponseWriter, r *http.Request) error {
	var request settingsRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if s.of == nil {
		return noSettings()
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	changed, err := s.of.UpdateConfig(func(c *config.Config) error {
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
	if request.AnswerPrompts != nil {
		s.changed()
	}
	return httpjson.WriteJSON(w, s.shape(r.Context(), changed))
}

// switchLogin switches whether the desktop app starts at login (DSK-04).
func (s *settings) switchLogin(on bool) error {
	if s.login == nil {
		return bridge.Errorf(bridge.Unsupported, "the start at login belongs to the desktop app, which does not serve this page")
	}
	return s.login.Set(on)
}

func noSettings() error {
	return bridge.Errorf(bridge.Unavailable, "the settings cannot be changed from here: they are in config.json")
}

func (s *settings) shape(ctx context.Context, c config.Config) dto.Settings {
	wire := dto.Settings{
		Port: c.Port, AutoWake: c.AutoWake, WakeOnDirect: c.WakeOnDirect,
		Desktop: dto.Desktop{Notifications: c.Desktop.Notifications}, Claude: dto.Claude{StatusLine: c.Claude.StatusLine},
		AnswerPrompts: string(c.AnswerPrompts),
		ServedPort:    servedPort(ctx),
	}
	if quiet := c.Desktop.Quiet; quiet != (config.Quiet{}) {
		wire.Desktop.Quiet = &dto.Quiet{From: quiet.From, To: quiet.To}
	}
	if login := s.login; login != nil {
		wire.Login = &dto.Login{On: login.Enabled(), Why: login.Unavailable()}
	}
	return wire
}

// servedPort is the port on which the request came in, which the guard has read
// already.
func servedPort(ctx context.Context) int {
	local, _ := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return 0
	}
	_, text, _ := net.SplitHostPort(local.String())
	port, _ := strconv.Atoi(text)
	return port
}
