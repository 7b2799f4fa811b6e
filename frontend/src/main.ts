import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { dropOldDrafts } from './lib/drafts';
import { theme } from './lib/theme.svelte';
import { keepVisible } from './lib/visible';

theme.start();
dropOldDrafts(Date.now());
// Before anything is drawn: whatever shows words of an agent's shows all of them.
keepVisible(document.documentElement);

// By this the native window tells that the page is here and not a browser's word
// that it could not be opened.
document.documentElement.dataset.bridge = 'dashboard';

const target = document.getElementById('app');
if (target === null) throw new Error('the page has no place for the app');
mount(App, { target });
