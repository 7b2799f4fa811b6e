package guard

import "net/http"

// doorStyle is the style of the door: the page's own files need a cookie.
const doorStyle = `:root{color-scheme:light dark}body{font:16px/24px system-ui,sans-serif;margin:0;min-height:100vh;display:grid;place-items:center}` +
	`main{max-width:30rem;padding:2rem}h1{font-size:1.25rem;margin:0 0 .75rem}p{margin:0 0 .75rem}` +
	`code{font:15px/24px ui-monospace,monospace;padding:.25rem .5rem;border:1px solid;border-radius:6px}`

const doorPage = `<!doctype html><html lang="en" data-bridge="door"><head><meta charset="utf-8"><title>Bridge</title>` +
	`<meta name="viewport" content="width=device-width"><style>` + doorStyle + `</style></head>` +
	`<body><main><h1>This browser has no access yet</h1><p>Type this in a terminal on this computer:</p><p><code>bridge open</code></p>` +
	`<p>It opens the dashboard here. This page then continues by itself.</p></main>` +
	`<script>` + doorScript + `</script></body></html>`

// doorScript loads the same address again, with the place in the page that it names.
const doorScript = `setTimeout(()=>location.reload(),3000)`

// doorPolicy allows exactly that style and that script.
var doorPolicy = "default-src 'none'; style-src " + hashOf(doorStyle) + "; script-src " + hashOf(doorScript) +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// IsNavigation reports whether a browser asks for the dashboard's page to show it to a person.
func IsNavigation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// WriteDoor answers a navigation of a browser without access by a page that says what to do.
// The page loads its address again every three seconds: once the owner has opened a launch
// link in the browser, the dashboard appears. It reveals nothing about this Bridge.
func WriteDoor(w http.ResponseWriter) error {
	w.Header().Set("Content-Security-Policy", doorPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(doorPage)) // a lost client comes again
	return nil
}
