package api

// Status is what the broker says of itself.
type Status struct {
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	Host     string `json:"host"` // serve, background, desktop, service
	Since    int64  `json:"since"`
	URL      string `json:"url"`
	Schema   int    `json:"schema"`
	Revision int64  `json:"revision"`
	Peers    []Peer `json:"peers"`
	Unread   int    `json:"unread"`
}
