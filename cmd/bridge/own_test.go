package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"bridge/backend/testing/testkit"
)

// natsServer runs a NATS server of a team's own, as its configuration file says, until it
// is terminated. It writes into a file where it is reached.
func natsServer(config, at string) error {
	opts, err := natsserver.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	opts.NoLog, opts.NoSigs = true, true
	server, err := natsserver.NewServer(opts)
	if err != nil {
		return err
	}
	server.Start()
	if !server.ReadyForConnections(testkit.Patience) {
		return errors.New("the NATS server does not come up")
	}
	if err := os.WriteFile(at+".tmp", []byte(server.ClientURL()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(at+".tmp", at); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	server.Shutdown()
	server.WaitForShutdown()
	return nil
}

// natsKey makes a user's credentials, a seed, and prints the key that the server is told.
func natsKey(file string) error {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return err
	}
	fmt.Println(public)
	return os.WriteFile(file, append(seed, '\n'), 0o600)
}

// natsOperator makes what an operator's tools make: the operator's and two accounts'
// JWTs, which it prints as the server's configuration, and for each user NAME
// credentials of a JWT and its seed, NAME.creds, with the permissions in NAME.json
// as `bridge-hub permissions --json` gives them; without that file, all of the
// account.
func natsOperator(output io.Writer, users ...string) error {
	operator, operatorID, err := natsPair(nkeys.CreateOperator)
	if err != nil {
		return err
	}
	_, systemID, err := natsPair(nkeys.CreateAccount)
	if err != nil {
		return err
	}
	account, accountID, err := natsPair(nkeys.CreateAccount)
	if err != nil {
		return err
	}
	claims := jwt.NewOperatorClaims(operatorID)
	claims.SystemAccount = systemID
	signed, err := claims.Encode(operator)
	if err != nil {
		return err
	}
	fmt.Fprintf(output, "operator: %s\nresolver: MEMORY\nresolver_preload {\n", signed)
	for _, id := range []string{systemID, accountID} {
		claims := jwt.NewAccountClaims(id)
		if id == accountID {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		if signed, err = claims.Encode(operator); err != nil {
			return err
		}
		fmt.Fprintf(output, "  %s: %s\n", id, signed)
	}
	fmt.Fprintln(output, "}")
	for _, name := range users {
		if err := natsUser(name, account); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func natsPair(create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string, err error) {
	if pair, err = create(); err == nil {
		public, err = pair.PublicKey()
	}
	return pair, public, err
}

func natsUser(name string, account nkeys.KeyPair) error {
	pair, public, err := natsPair(nkeys.CreateUser)
	if err != nil {
		return err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	var allowed struct{ Publish, Subscribe []string }
	if text, err := os.ReadFile(name + ".json"); err == nil {
		if err := json.Unmarshal(text, &allowed); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	claims.Pub.Allow.Add(allowed.Publish...)
	claims.Sub.Allow.Add(allowed.Subscribe...)
	signed, err := claims.Encode(account)
	if err != nil {
		return err
	}
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	text, err := jwt.FormatUserConfig(signed, seed)
	if err != nil {
		return err
	}
	return os.WriteFile(name+".creds", text, 0o600)
}
