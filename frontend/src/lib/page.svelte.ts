// What every part of the page reads: the live snapshot, the clock, the route
// and the theme. One instance each, because there is one window.

import { tick } from 'svelte';
import { joinNotifications } from '../features/messages/messages';
import type { State, Work } from './api';
import { Live, type Snapshot } from './live';
import { loadFailedAgain } from './loaded.svelte';
import { href, parseRoute, type Place } from './route';
import { fetchState } from './state';
import { browserPorts, sharedEvents } from './stream';

/** How long the count of the last hour's messages is good for, in ms. */
const COUNT_LIFE = 60_000;

class Page {
  live: Snapshot = $state.raw({ phase: 'loading', state: null, offlineSince: null, reason: '' });
  // Each part is derived by itself: what reads one is not run again when only another changed.
  readonly phase = $derived(this.live.phase);
  readonly state = $derived(this.live.state);
  /** What is shown is the last that was known, not the present. */
  readonly stale = $derived(this.phase === 'offline' || this.phase === 'refused');
  /** Changes whenever something in Bridge did. */
  readonly revision = $derived(this.state?.revision ?? -1);
  #messages = $derived(this.state?.messages);
  #runs = $derived(this.state?.runs);
  #peers = $derived(this.state?.peers);
  /** The newest messages, newest first. */
  readonly messages = $derived(joinNotifications(this.#messages ?? []));
  /** All live sessions, those of jobs too, which have their job's name. */
  readonly everyone = $derived(this.#peers ?? []);
  /** The live sessions; those of jobs are with their job. */
  readonly peers = $derived.by(() => {
    const jobs = new Set(this.#runs?.map((run) => run.job));
    return this.everyone.filter((peer) => !jobs.has(peer.name));
  });
  /** The time that ages are counted from. It moves every few seconds, not with each state: all ages would be drawn anew. */
  now = $state(Date.now());
  /** The part of the details that an opened message starts at. */
  detailsAt: 'top' | 'delivery' = $state('top');
  /** The opened message is being answered. */
  replying = $state(false);
  /** The part of the settings to begin at when they are opened. */
  settingsAt: 'top' | 'rules' = $state('top');
  route = $state.raw(parseRoute(location.hash));
  /** The newest revision that is known; the state of it comes a moment later. */
  latest = $state(-1);
  /** The last news of maintenance; undefined while there was none. */
  work: { running: Work | null } | undefined = $state.raw();
  #opener: HTMLElement | null = null;
  #connection = new Live(
    {
      fetchState: () => fetchState(this.live.state),
      openEvents: sharedEvents(browserPorts()),
      now: Date.now,
      random: Math.random,
      told: (revision) => (this.latest = revision),
      worked: (running) => (this.work = { running }),
    },
    (snapshot) => {
      const isBack = snapshot.phase === 'live' && this.live.phase !== 'live';
      this.live = snapshot;
      this.latest = this.revision;
      if (isBack) loadFailedAgain();
    },
  );

  start(): () => void {
    const onHash = () => (this.route = parseRoute(location.hash));
    const onVisible = () => {
      if (document.visibilityState !== 'visible') return;
      this.now = Date.now();
      this.#connection.poke();
    };
    const clock = setInterval(() => {
      this.now = Date.now();
      this.#countAnew();
    }, 5000);
    addEventListener('hashchange', onHash);
    addEventListener('focus', onVisible);
    document.addEventListener('visibilitychange', onVisible);
    this.#connection.start();
    return () => {
      clearInterval(clock);
      removeEventListener('hashchange', onHash);
      removeEventListener('focus', onVisible);
      document.removeEventListener('visibilitychange', onVisible);
      this.#connection.stop();
    };
  }

  /** What the last hour brought changes by itself, and is counted by the broker. */
  #countAnew(): void {
    const { phase, state } = this.live;
    if (phase !== 'live' || state === null || document.visibilityState !== 'visible') return;
    if (this.now - state.lastHour.at > COUNT_LIFE) this.#connection.poke();
  }

  /** Takes in a part of the state that an answer told before the next one is fetched. */
  told(part: Partial<State>): void {
    const { state } = this.live;
    if (state !== null) this.live = { ...this.live, state: { ...state, ...part } };
  }

  retry(): void {
    this.#connection.poke();
  }

  go(place: Place): void {
    location.hash = href(place);
  }

  /** Changes what stands in the address of the place that is shown; "back" does not go through it. */
  replace(place: Place): void {
    history.replaceState(history.state, '', href(place, this.route.message));
    this.route = parseRoute(location.hash);
  }

  /** Shows a message in the details, from its top or from its delivery. The opener gets the focus back later. */
  openMessage(id: string, at: 'top' | 'delivery' = 'top'): void {
    this.detailsAt = at;
    this.replying = false;
    const opener = document.activeElement;
    if (opener instanceof HTMLElement && opener.closest('main') !== null) this.#opener = opener;
    location.hash = href(this.route.place, id);
  }

  /** Answers the opened message, or the one that is given; it is opened first. */
  reply(id: string | null): boolean {
    if (id !== null) this.openMessage(id);
    if (id === null && this.route.message === null) return false;
    this.replying = true;
    return true;
  }

  closeMessage(): void {
    this.replying = false;
    history.replaceState(history.state, '', href(this.route.place));
    this.route = parseRoute(location.hash);
    // The list is inert under open details on a narrow window until then.
    void tick().then(() => this.#opener?.focus());
  }
}

export const page = new Page();
