package clidata

import (
	"testing"

	"bridge/backend/core/bridge"
)

// stores has each kind with a store.
var stores = map[bridge.AgentKind]Store{bridge.Claude: Claude, bridge.Codex: Codex, bridge.OpenCode: OpenCode}

func TestKND_07_EachKindWithAFolderHasAStore(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		traits, store := bridge.TraitsOf(kind), stores[kind]
		reads := len(traits.Data.Default) > 0
		if (store.children != nil) != reads || (store.records != nil) != reads {
			t.Errorf("%s: its folder is known: %v, but its store is read: children %v, records %v", kind, reads, store.children != nil, store.records != nil)
		}
		if (store.busySince != nil) != traits.Registry || (store.idleSince != nil) != traits.Registry {
			t.Errorf("%s: it has a registry: %v, but that is read: %v", kind, traits.Registry, store.busySince != nil)
		}
	}
}
