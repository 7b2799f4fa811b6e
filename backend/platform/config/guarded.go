package config

// SecretFiles returns the files of a home that prove something or hold a key (AUT-03),
// relative with slashes. A name that ends with a slash is that of a folder.
func SecretFiles() []string {
	return []string{"token", "launch-secret", "dashboard-key", "dashboard.json", BrowsersStore, EntryPage, "network/"}
}

// SettingFiles returns the files of a home that say what is allowed there, in the same form.
// Only the owner and the programs of Bridge change them.
func SettingFiles() []string {
	return []string{"config.json", RulesStore, "needs.json", "jobs.json", "approvals/", "install/"}
}
