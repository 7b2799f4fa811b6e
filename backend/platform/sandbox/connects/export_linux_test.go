package connects

// PretendBlind has a supervisor believe that the system does not let it look into others.
func (s *Supervisor) PretendBlind() { s.looksInto = func(int) bool { return false } }
