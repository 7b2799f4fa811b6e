package job

// Checkout records git's folders of a job's checkout and the filters in its settings,
// from before the job began. A job can change the link to git's folder, and the
// settings in it.
type Checkout struct {
	Top    string `json:"top"`              // canonical, as all paths here
	Inside string `json:"inside,omitempty"` // the job's folder within Top, with slashes, which limits its work; "" is all of Top
	GitDir string `json:"gitDir"`           // git's folder for this checkout
	Common string `json:"commonDir"`        // git's folder for all checkouts of the repository
	// Filters are all filters in git's settings.
	Filters []Filter `json:"filters,omitempty"`
	// Author and Committer are git's author and committer of a commit in the owner's
	// checkout, as `NAME <EMAIL>`. They are "" for a job without a worktree.
	Author    string `json:"author,omitempty"`
	Committer string `json:"committer,omitempty"`
}

// GitFolders returns the folders that git writes for a commit in the checkout. The
// folder of a linked one is within the common one. It is listed for sandboxes, such as
// codex's, that would protect it otherwise.
func (c Checkout) GitFolders() []string {
	if c.GitDir == c.Common {
		return []string{c.Common}
	}
	return []string{c.Common, c.GitDir}
}

// Filter is a pair of programs that convert the content of files for git. The programs
// are shell command lines.
type Filter struct {
	Name     string `json:"name"`
	Clean    string `json:"clean,omitempty"`
	Smudge   string `json:"smudge,omitempty"`
	Process  string `json:"process,omitempty"`
	Required bool   `json:"required,omitempty"`
	// Local reports that part of it is in the repository's own settings.
	Local bool `json:"local,omitempty"`
}
