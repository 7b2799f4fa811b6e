package config

// FallbackSettings returns the settings for an unreadable config.json: the defaults
// and the variables. Maintenance must also work on a damaged home.
func FallbackSettings(getenv func(string) string) Settings { return apply(defaults(), getenv) }
