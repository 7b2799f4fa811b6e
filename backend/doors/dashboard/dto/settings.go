package dto

// Settings is the answer of GET and PUT /api/settings: the values of config.json,
// or the defaults.
type Settings struct {
	Port         int         `json:"port"` // 0 picks a free one
	AutoWake     bool        `json:"autoWake"`
	WakeOnDirect bool        `json:"wakeOnDirect"`
	Desktop      Desktop     `json:"desktop"`
	Claude       Claude      `json:"claude"`
	Mail         Mail        `json:"mail"`
	Backups      AutoBackups `json:"backups"`
	// AnswerPrompts controls when sessions' prompts can be answered here: off, away
	// or always.
	AnswerPrompts string `json:"answerPrompts"`
	// Prove controls whether Bridge tries new versions of agents: auto or off.
	Prove string `json:"prove"`
	// Login is null if no desktop app serves the page.
	Login *Login `json:"login"`
	// ServedPort is the page's current port. A changed port applies from the next
	// start.
	ServedPort int `json:"servedPort"`
}

type Desktop struct {
	Notifications bool   `json:"notifications"`
	Quiet         *Quiet `json:"quiet"` // null for none
}

// Quiet is a daily period without notices, such as "22:00".
type Quiet struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type Claude struct {
	StatusLine bool `json:"statusLine"`
}

// Mail holds the limits for mail of agents.
type Mail struct {
	// Exchange is how many messages two sessions may exchange in 15 minutes before the
	// owner is asked; 0 means any number.
	Exchange int `json:"exchange"`
}

// AutoBackups are the automatic backups of messages.
type AutoBackups struct {
	Auto       bool `json:"auto"`
	EveryHours int  `json:"everyHours"`
}

type Login struct {
	On  bool   `json:"on"`
	Why string `json:"why"` // why it cannot be switched on, or ""
}
