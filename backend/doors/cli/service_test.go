package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/service"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// managerOf is a service manager whose service stands as its status says.
type managerOf struct {
	service.Manager
	status service.Status
	err    error
}

func (m managerOf) MayChange() error                               { return nil }
func (m managerOf) Start(context.Context) error                    { return m.err }
func (m managerOf) Stop(context.Context) error                     { return m.err }
func (m managerOf) Status(context.Context) (service.Status, error) { return m.status, nil }

// controlOf is a service of the caller's own with that manager, whose home nobody
// serves but the service itself when it runs.
func controlOf(t *testing.T, m managerOf) service.Control {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return service.Control{
		Service: service.Service{Name: "bridge", Home: home, Account: current.Username}, Manager: m,
		Broker: func(context.Context) (*api.Status, error) {
			if m.status.State == service.Running {
				return &api.Status{Host: service.Host}, nil
			}
			return nil, nil //nolint:nilnil // nobody serves it
		},
	}
}

func TestDSK_03_ExitCodesSayHowTheServiceStands(t *testing.T) {
	refused := bridge.Errorf(bridge.Internal, "the manager says no")
	for _, tt := range []struct {
		name           string
		manager        managerOf
		status, starts int
	}{
		{"runs", managerOf{status: service.Status{Installed: true, State: service.Running}}, 0, 0},
		{"between two starts", managerOf{status: service.Status{Installed: true, State: service.Restarting}, err: refused}, 1, 1},
		{"failed", managerOf{status: service.Status{Installed: true, State: service.Failed}}, 1, 1},
		{"stopped", managerOf{status: service.Status{Installed: true, State: service.Stopped}}, 4, 1},
		{"not installed", managerOf{status: service.Status{State: service.Stopped}}, 4, 1},
		{"the manager refuses", managerOf{status: service.Status{Installed: true, State: service.Running}, err: refused}, 0, 1},
	} {
		t.Run("DSK-03 "+tt.name, func(t *testing.T) {
			s := &serviceCommands{App: &App{Stdout: &bytes.Buffer{}}}
			c := controlOf(t, tt.manager)
			if err := s.status(t.Context(), c); codeOf(err) != tt.status {
				t.Errorf("status ends with %d (%v), want %d", codeOf(err), err, tt.status)
			}
			if err := s.started(service.Control.Start)(t.Context(), c); codeOf(err) != tt.starts {
				t.Errorf("start ends with %d (%v), want %d", codeOf(err), err, tt.starts)
			}
		})
	}
}

func codeOf(err error) int {
	if err == nil {
		return outcome.Done
	}
	return outcome.Code(err)
}

func TestDSK_03_ServiceCommandsPrintLinesOrOneDocument(t *testing.T) {
	c := controlOf(t, managerOf{status: service.Status{Installed: true, State: service.Stopped, File: "/unit"}})
	var out bytes.Buffer
	s := &serviceCommands{App: &App{Stdout: &out}}
	stop := s.told(service.Control.Stop)
	if err := stop(t.Context(), c); err != nil || out.String() != "The service bridge did not run.\n" {
		t.Errorf("stop prints %q, %v", &out, err)
	}
	if err := s.status(t.Context(), c); !errors.As(err, new(*outcome.ReportedError)) || !strings.Contains(out.String(), "State    stopped\n") {
		t.Errorf("status prints %q, %v", &out, err)
	}
	s.json = true
	for name, do := range map[string]func(context.Context, service.Control) error{"stop": stop, "status": s.status} {
		out.Reset()
		_ = do(t.Context(), c) // its code is told above
		var report map[string]any
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%s --json: %v\n%s", name, err, &out)
		}
		broker, there := report["broker"]
		if report["service"] != "bridge" || report["state"] != "stopped" || report["installed"] != true || report["file"] != "/unit" || broker != nil || !there {
			t.Errorf("%s --json prints %s", name, &out)
		}
	}
}
