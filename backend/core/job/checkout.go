package job

// Checkout says where git keeps what belongs to a job's checkout, and which filters its
// settings name, as both were before the job began. A job can change what leads to git's
// folder, and the settings in it.
type Checkout struct {
	Top    string `json:"top"`              // canonical, as all paths here
	Inside string `json:"inside,omitempty"` // the job's folder within Top, with slashes, where its work is looked for; "" is all of Top
	GitDir string `json:"gitDir"`           // git's folder for this checkout
	Common string `json:"commonDir"`        // git's folder for all checkouts of the repository
	// Filters are all that git's settings name.
	Filters []Filter `json:"filters,omitempty"`
	// Author and Committer are who git names for a commit in the owner's checkout, as
	// `NAME <EMAIL>`. They are "" for a job without a worktree.
	Author    string `json:"author,omitempty"`
	Committer string `json:"committer,omitempty"`
}

// GitFolders returns the folders that git writes when somebody commits in the checkout. That
// of a linked one lies within the common one; it is named for sandboxes that keep it from
// being written otherwise, as codex's does.
func (c Checkout) GitFolders() []string {
	if c.GitDir == c.Common {
		return []string{c.Common}
	}
	return []string{c.Common, c.GitDir}
}

// Filter is a pair of programs through which git passes the content of files. The
// programs are command lines of a shell.
type Filter struct {
	Name     string `json:"name"`
	Clean    string `json:"clean,omitempty"`
	Smudge   string `json:"smudge,omitempty"`
	Process  string `json:"process,omitempty"`
	Required bool   `json:"required,omitempty"`
	// Local says that a part of it stands in the repository's own settings.
	Local bool `json:"local,omitempty"`
}
