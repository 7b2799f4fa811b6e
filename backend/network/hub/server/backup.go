package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/lifecycle"
)

// Backup describes a backup, backup.json in its folder. The folder also holds the hub's
// keys: it is as secret as the home.
type Backup struct {
	Version int               `json:"version"`
	Team    string            `json:"team"`
	At      bridge.UnixMillis `json:"at"`
	Streams []BackupStream    `json:"streams"`
}

// BackupStream is one stream of the engine, as the engine exported it.
type BackupStream struct {
	Login  string          `json:"login"` // of the stream's account
	Name   string          `json:"name"`
	SHA256 string          `json:"sha256"`
	Bytes  int64           `json:"bytes"`
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

const (
	backupVersion  = 1
	maxBackupBytes = 16 << 20
	chunkTimeout   = time.Minute
	chunkBytes     = 128 << 10
	teamLogin      = "hub"
)

func (s BackupStream) file() string { return s.Name + ".snapshot" }

// hubFiles returns the files of a hub other than its streams, relative to the home.
func hubFiles() []string {
	return []string{"hub.json", "admin.nk", filepath.Join("network", "identity.pem")}
}

// backupStreams returns the streams of a backup. It excludes presence, which would be stale.
func backupStreams(team string) []BackupStream {
	return []BackupStream{
		{Login: registryLogin, Name: subject.BucketStream(registryBucket)},
		{Login: teamLogin, Name: subject.BucketStream(subject.RosterBucket(team))},
		{Login: teamLogin, Name: subject.MessageStream(team)},
		{Login: teamLogin, Name: subject.DecisionStream(team)},
	}
}

// Backup writes the whole state of the hub into a new folder, while the hub runs. Before it
// publishes that folder, it restores the backup into a temporary hub to verify it. Backup fails
// with Conflict if the folder exists, and with Storage if the backup cannot be written or
// restored.
func (c *Client) Backup(ctx context.Context, folder string, now time.Time) (Backup, error) {
	folder, err := disk.CanonicalTarget(folder)
	if err != nil {
		return Backup{}, bridge.Errorf(bridge.Invalid, "the folder of the backup cannot be used: %w", err)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		return Backup{}, bridge.Errorf(bridge.Conflict, "%s is there already: a backup needs a folder of its own", folder)
	}
	pending := disk.TempName(folder)
	b := Backup{Version: backupVersion, Team: c.set.Team, At: now.UnixMilli()}
	if err := c.write(ctx, pending, &b); err != nil {
		return Backup{}, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the backup could not be written, what there is of it is in %s: %v", pending, err))
	}
	if err := verify(ctx, pending, c.home); err != nil {
		return Backup{}, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the backup cannot be restored, it is left in %s: %v", pending, err))
	}
	return b, disk.Publish(pending, folder)
}

func (c *Client) write(ctx context.Context, folder string, b *Backup) error {
	if err := disk.MakeDir(filepath.Join(folder, "network")); err != nil {
		return err
	}
	for _, name := range hubFiles() {
		if _, _, err := (disk.Files{}).Copy(filepath.Join(c.home.dir, name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	for _, stream := range backupStreams(b.Team) {
		conn := c.conn
		if stream.Login == registryLogin {
			registry, err := c.login(registryLogin)
			if err != nil {
				return err
			}
			defer registry.Close()
			conn = registry
		}
		if err := snapshot(ctx, conn, folder, &stream); err != nil {
			return fmt.Errorf("%s: %w", stream.Name, err)
		}
		b.Streams = append(b.Streams, stream)
	}
	return disk.WriteJSON(filepath.Join(folder, "backup.json"), b)
}

// engineError is an error answer of the engine.
type engineError struct {
	Description string `json:"description"`
}

// call sends a request to the engine's API.
func call(ctx context.Context, conn *nats.Conn, operation string, request, into any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	msg, err := conn.RequestWithContext(ctx, "$JS.API."+operation, data)
	if err != nil {
		return err
	}
	var refused struct{ Error *engineError }
	if err := json.Unmarshal(msg.Data, &refused); err != nil {
		return err
	}
	if refused.Error != nil {
		return errors.New(refused.Error.Description)
	}
	return json.Unmarshal(msg.Data, into)
}

// snapshot exports a stream of the engine to a file. The engine checks each message.
func snapshot(ctx context.Context, conn *nats.Conn, folder string, stream *BackupStream) (err error) {
	chunks, err := conn.SubscribeSync(conn.NewInbox())
	if err != nil {
		return err
	}
	defer func() { _ = chunks.Unsubscribe() }()
	var head struct{ Config, State json.RawMessage }
	if err := call(ctx, conn, "STREAM.SNAPSHOT."+stream.Name, map[string]any{"deliver_subject": chunks.Subject, "jsck": true, "chunk_size": chunkBytes}, &head); err != nil {
		return err
	}
	stream.Config, stream.State = head.Config, head.State
	path := filepath.Join(folder, stream.file())
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, disk.PrivateFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for {
		once, cancel := context.WithTimeout(ctx, chunkTimeout)
		msg, err := chunks.NextMsgWithContext(once)
		cancel()
		if err != nil {
			return err
		}
		if len(msg.Data) == 0 {
			if status := msg.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf("the engine broke off: %s %s", status, msg.Header.Get("Description"))
			}
			break
		}
		if _, err := file.Write(msg.Data); err != nil {
			return err
		}
		if msg.Reply == "" { // the last one
			continue
		}
		if err := msg.Respond(nil); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	stream.SHA256, stream.Bytes, err = disk.Checksum(path)
	return err
}

// verify restores a backup into a temporary hub.
func verify(ctx context.Context, folder string, home Home) error {
	at, err := os.MkdirTemp(home.dir, "verify-")
	if err != nil {
		return err
	}
	err = Restore(ctx, folder, Home{dir: filepath.Join(at, "hub")})
	return errors.Join(err, os.RemoveAll(at))
}

// Restore creates a home from a backup. It fails with Conflict if the home has a hub.
func Restore(ctx context.Context, folder string, home Home) error {
	var b Backup
	if err := disk.ReadJSON(filepath.Join(folder, "backup.json"), maxBackupBytes, &b); err != nil {
		return bridge.WithCause(bridge.Storage, err, "no backup can be read in "+folder+": "+disk.Reason(err))
	}
	if b.Version != backupVersion {
		return bridge.Errorf(bridge.Unsupported, "the backup is of version %d: this hub knows %d", b.Version, backupVersion)
	}
	for _, name := range append(hubFiles(), "store") {
		if _, err := os.Lstat(filepath.Join(home.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return bridge.Errorf(bridge.Conflict, "%s is the home of a hub already: restore into a folder of its own", home.dir)
		}
	}
	lock, err := home.acquire(ctx)
	if err != nil {
		return err
	}
	s := &Server{opts: Options{Home: home, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, lock: lock, announcements: map[string]words{}} //nolint:forbidigo // no time is stored
	s.tasks = lifecycle.NewTasks(ctx)
	defer s.Close()
	return s.restore(ctx, folder, b)
}

func (s *Server) restore(ctx context.Context, folder string, b Backup) (err error) {
	home := s.opts.Home
	if err := disk.MakeDir(home.network()); err != nil {
		return err
	}
	for _, name := range hubFiles() {
		if _, _, err := (disk.Files{}).Copy(filepath.Join(folder, name), filepath.Join(home.dir, name)); err != nil {
			return err
		}
	}
	if s.opts.Settings, err = home.Load(); err != nil {
		return err
	}
	s.opts.Settings.Cluster, s.opts.Settings.Peers = "", nil // other nodes catch up when it is served
	if s.keys, err = home.openKeys(); err != nil {
		return err
	}
	s.roster = newRoster(b.Team, s.keys.adminKey, s.opts.Log, s.running)
	if err := s.startEngine(); err != nil {
		return err
	}
	if s.conn, s.js, err = s.connect(teamLogin); err != nil {
		return err
	}
	if s.own, _, err = s.connect(registryLogin); err != nil {
		return err
	}
	for _, stream := range b.Streams {
		conn := s.conn
		if stream.Login == registryLogin {
			conn = s.own
		}
		if err := readBack(ctx, conn, folder, stream); err != nil {
			return fmt.Errorf("%s: %w", stream.Name, err)
		}
	}
	return nil
}

// counts must be the same after a restore.
type counts struct {
	Messages uint64 `json:"messages"`
	Last     uint64 `json:"last_seq"`
}

// readBack imports a stream into the engine and checks that it is complete.
func readBack(ctx context.Context, conn *nats.Conn, folder string, stream BackupStream) error {
	path := filepath.Join(folder, stream.file())
	if sum, _, err := disk.Checksum(path); err != nil || sum != stream.SHA256 {
		return bridge.Errorf(bridge.Storage, "%s is not as it was written", path)
	}
	config := map[string]any{}
	if err := json.Unmarshal(stream.Config, &config); err != nil {
		return err
	}
	config["num_replicas"] = 1
	var response struct {
		Deliver string `json:"deliver_subject"`
	}
	if err := call(ctx, conn, "STREAM.RESTORE."+stream.Name, map[string]any{"config": config, "state": stream.State}, &response); err != nil {
		return err
	}
	if err := upload(ctx, conn, path, response.Deliver); err != nil {
		return err
	}
	var want counts
	var got struct{ State counts }
	if err := json.Unmarshal(stream.State, &want); err != nil {
		return err
	}
	if err := call(ctx, conn, "STREAM.INFO."+stream.Name, struct{}{}, &got); err != nil {
		return err
	}
	if got.State != want {
		return bridge.Errorf(bridge.Storage, "it has %+v instead of %+v", got.State, want)
	}
	return nil
}

// upload sends a file in chunks, each after the one before was accepted.
func upload(ctx context.Context, conn *nats.Conn, path, subject string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	buf := make([]byte, chunkBytes)
	for {
		n, err := io.ReadFull(file, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		once, cancel := context.WithTimeout(ctx, chunkTimeout)
		answer, err := conn.RequestWithContext(once, subject, buf[:n])
		cancel()
		if err != nil {
			return err
		}
		var refused struct{ Error *engineError }
		if len(bytes.TrimSpace(answer.Data)) > 0 && json.Unmarshal(answer.Data, &refused) == nil && refused.Error != nil {
			return errors.New(refused.Error.Description)
		}
		if n == 0 { // the end
			return nil
		}
	}
}
