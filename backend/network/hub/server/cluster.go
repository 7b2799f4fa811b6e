package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"strconv"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

// cluster sets up this node of a hub of three (HUB-07). All of them have the hub's
// identity, and show it to each other: nobody without it gets in.
func (s *Server) cluster(o *natsserver.Options) error {
	set := s.opts.Settings
	host, text, err := net.SplitHostPort(set.Cluster)
	port, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil {
		return bridge.Errorf(bridge.Invalid, "%q is no address of a node: that is host:port", set.Cluster)
	}
	o.Cluster.Name, o.Cluster.Host, o.Cluster.Port = "bridge-"+set.Team, host, int(port)
	pinned := link.Pinned(s.keys.identity.ID)
	both := s.keys.identity.ServerConfig()
	both.ClientAuth = tls.RequireAnyClientCert
	both.InsecureSkipVerify, both.VerifyConnection = true, pinned.VerifyConnection
	o.Cluster.TLSConfig, o.Cluster.TLSTimeout = both, 5
	o.Cluster.ConnectBackoff = true
	for _, peer := range set.Peers {
		if _, _, err := net.SplitHostPort(peer); err != nil {
			return bridge.Errorf(bridge.Invalid, "%q is no address of a node: that is host:port", peer)
		}
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: peer})
	}
	return nil
}

// The engine never answers what it is asked while it elects a leader, nor of two nodes
// that ask for the same at once the second: so no request waits long, and each is made
// again.
const (
	engineTimeout = 3 * time.Second
	settleEvery   = 250 * time.Millisecond
)

// once gives one request to the engine its time.
func (s Settings) once(ctx context.Context, ask func(context.Context) error) error {
	limit := startTimeout
	if s.Cluster != "" {
		limit = engineTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ask(ctx)
}

// elected is nil where this node may ask for the team's streams: one of three makes them,
// the registry last, and the others come after it.
func (s Settings) elected(engine *natsserver.Server) error {
	if s.Cluster == "" || engine.JetStreamIsLeader() || engine.JetStreamIsStreamAssigned(registryAccount, subject.BucketStream(registryBucket)) {
		return nil
	}
	return bridge.Errorf(bridge.Unavailable, "no node that leads has made the team's streams yet")
}
