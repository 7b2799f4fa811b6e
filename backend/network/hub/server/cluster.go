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

// cluster configures this node of a three-node hub (HUB-07). All nodes have the hub's
// identity and prove it to each other: no other node is admitted.
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

// While the engine elects a leader, it never answers requests. If two nodes request the
// same at once, it never answers the second. So each request has a short timeout and is
// retried.
const (
	engineTimeout = 3 * time.Second
	settleEvery   = 250 * time.Millisecond
)

// once runs one request to the engine with its timeout.
func (s Settings) once(ctx context.Context, ask func(context.Context) error) error {
	limit := startTimeout
	if s.Cluster != "" {
		limit = engineTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ask(ctx)
}

// elected returns nil if this node may request the team's streams. One of three nodes
// creates them, the registry last; the others follow. Until then it fails with Unavailable.
func (s Settings) elected(engine *natsserver.Server) error {
	if s.Cluster == "" || engine.JetStreamIsLeader() || engine.JetStreamIsStreamAssigned(registryAccount, subject.BucketStream(registryBucket)) {
		return nil
	}
	return bridge.Errorf(bridge.Unavailable, "no node that leads has made the team's streams yet")
}
