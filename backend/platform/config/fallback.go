package config

// FallbackSettings are those in force where config.json cannot be read:
// maintenance must work on a damaged home too.
func FallbackSettings(getenv func(string) string) Settings { return apply(defaults(), getenv) }
