package dashboard

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"time"

	"bridge/backend/core/bridge"
)

// mediaTypes are the media types of the page's files. The system's table is not
// used: a Windows registry that calls .js plain text would break the page.
var mediaTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".ico":   "image/x-icon",
	".woff2": "font/woff2",
}

// pageFiles is the built page.
type pageFiles struct{ files fs.FS } // nil without a page

// index answers / with the page.
func (p pageFiles) index(w http.ResponseWriter, r *http.Request) error {
	return p.serve(w, r, "index.html")
}

// asset answers /assets/ from the page's files.
func (p pageFiles) asset(w http.ResponseWriter, r *http.Request) error {
	return p.serve(w, r, "assets/"+r.PathValue("file"))
}

func (p pageFiles) serve(w http.ResponseWriter, r *http.Request, name string) error {
	content, err := p.read(name)
	if err != nil {
		return err
	}
	mediaType, ok := mediaTypes[path.Ext(name)]
	if !ok {
		mediaType = "application/octet-stream"
	}
	w.Header().Set("Content-Type", mediaType)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	return nil
}

func (p pageFiles) read(name string) ([]byte, error) {
	notBuilt := bridge.Errorf(bridge.Unavailable,
		"this build holds no page: run `npm ci` and `npm run build` in the folder frontend, then build bridge again")
	if p.files == nil {
		return nil, notBuilt
	}
	content, err := fs.ReadFile(p.files, name)
	switch {
	case err == nil:
		return content, nil
	case name == "index.html" && errors.Is(err, fs.ErrNotExist):
		return nil, notBuilt
	default: // missing, a folder, or an invalid name
		return nil, bridge.Errorf(bridge.NotFound, "the page has no such file")
	}
}
