package dashboard

// Watched reports whether a page is open: an event stream listens.
func (d *Dashboard) Watched() bool { return d.events.listening() }
