import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { api } from './lib/api';
import { dropOldDrafts, isNewStorage, shareDrafts, shareWaiting } from './lib/drafts';
import { density, theme } from './lib/theme.svelte';
import { keepVisible } from './lib/visible';

theme.start();
density.apply();
dropOldDrafts(Date.now());
// Before anything is drawn: whatever shows words of an agent's shows all of them.
keepVisible(document.documentElement);

// By this the native window tells that the page is here and not a browser's word
// that it could not be opened.
document.documentElement.dataset.bridge = 'dashboard';

const target = document.getElementById('app');
if (target === null) throw new Error('the page has no place for the app');
const place = target;

const isNew = isNewStorage();
const shared = shareDrafts({ list: async () => (await api.drafts()).drafts, set: api.setDraft });
addEventListener('pagehide', shareWaiting);
/** How long the first page of a browser waits for its drafts, in ms. */
const PATIENCE = 300;
function begin() {
  place.replaceChildren(); // the shell that index.html shows until now
  mount(App, { target: place });
}
if (isNew) void Promise.race([shared, new Promise((r) => setTimeout(r, PATIENCE))]).then(begin);
else begin();
