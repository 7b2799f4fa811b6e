import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { theme } from './lib/theme.svelte';

theme.start();

const target = document.getElementById('app');
if (target === null) throw new Error('the page has no place for the app');
mount(App, { target });
