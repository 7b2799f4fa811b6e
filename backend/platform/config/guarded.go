package config

// SecretFiles returns the files of a home that hold a secret or a key (AUT-03), as
// relative paths with slashes. A final slash marks a folder.
func SecretFiles() []string {
	return []string{"token", "launch-secret", "dashboard-key", "dashboard.json", BrowsersStore, EntryPage, "network/"}
}

// SettingFiles returns the files of a home that hold its permissions, in the same
// form. Only the owner and Bridge's own programs may change them.
func SettingFiles() []string {
	return []string{"config.json", RulesStore, "needs.json", DraftsStore, CostsStore, PausesStore, ProofsStore, "jobs.json", "approvals/", "install/"}
}
