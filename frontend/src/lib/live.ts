// Keeps the page's picture of Bridge current: the event stream says that
// something changed, then the state is fetched. It knows nothing of Svelte, so
// that its timing is tested with a fake clock.

import { Failed, Refused, type State, type Work } from './api';

export type Phase = 'loading' | 'live' | 'offline' | 'refused';

export interface Snapshot {
  phase: Phase;
  /** The last state known, kept while offline. */
  state: State | null;
  /** Since when the page or the broker is without connection, else null. */
  offlineSince: number | null;
  /** Why Bridge answered without a state, in a sentence of its own; '' where it did not answer. */
  reason: string;
}

export interface EventPort {
  onOpen(): void;
  onRevision(revision: number): void;
  /** News of maintenance: what runs now. */
  onWork(running: Work | null): void;
  onError(): void;
}

export interface LivePorts {
  fetchState(): Promise<State>;
  /** Opens the event stream and returns the function that closes it. */
  openEvents(port: EventPort): () => void;
  now(): number;
  /** A number in [0, 1), to spread the reconnects of several windows. */
  random(): number;
  /** Hears at once that there is news, before the state of it is fetched. */
  told(revision: number): void;
  /** Hears the news of maintenance. */
  worked(running: Work | null): void;
}

/** Events that arrive within this time share one fetch. */
export const COALESCE = 60;
/** A stream that opens so soon after the first fetch began needs no other one, in ms. */
const FIRST = 5000;
const BACKOFF = [500, 1000, 2000, 4000, 8000, 15000];

/** How long to wait before reconnect number `attempt` (from 0), in ms. */
export function backoff(attempt: number, random: number): number {
  const base = BACKOFF[Math.min(attempt, BACKOFF.length - 1)] ?? 15000;
  return Math.round(base * (0.75 + random / 2));
}

export class Live {
  snapshot: Snapshot = { phase: 'loading', state: null, offlineSince: null, reason: '' };
  #ports: LivePorts;
  #onChange: (s: Snapshot) => void;
  #closeEvents: (() => void) | null = null;
  #fetchTimer: ReturnType<typeof setTimeout> | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #fetching = false;
  #again = false;
  /** The last revision that was told during the fetch. */
  #toldMeanwhile: number | null = null;
  /** When the last fetch began. */
  #fetchedAt = -Infinity;
  #opened = false;
  #attempt = 0;
  #stopped = false;

  constructor(ports: LivePorts, onChange: (s: Snapshot) => void) {
    this.#ports = ports;
    this.#onChange = onChange;
  }

  start(): void {
    this.#connect();
  }

  stop(): void {
    this.#stopped = true;
    this.#disconnect();
    clearTimeout(this.#fetchTimer);
  }

  /** Looks again at once: the window came back, or the owner asked. */
  poke(): void {
    if (this.#stopped) return;
    if (this.#closeEvents === null) this.#connect();
    else this.#requestFetch(0);
  }

  #connect(): void {
    this.#disconnect();
    this.#closeEvents = this.#ports.openEvents({
      onOpen: () => {
        this.#attempt = 0;
        // What happened between the last event and this one is unknown. The first stream tells
        // its revision; the state that came with the page may be that one.
        const isFirst = !this.#opened && this.#ports.now() - this.#fetchedAt < FIRST;
        this.#opened = true;
        if (!isFirst) this.#requestFetch(0);
      },
      onRevision: (revision) => {
        this.#ports.told(revision);
        if (this.#fetching) this.#toldMeanwhile = revision;
        else if (revision !== this.snapshot.state?.revision) this.#requestFetch(COALESCE);
      },
      onWork: (running) => this.#ports.worked(running),
      onError: () => {
        this.#disconnect();
        this.#retryLater();
        this.#requestFetch(0);
      },
    });
    this.#requestFetch(0);
  }

  #disconnect(): void {
    clearTimeout(this.#retryTimer);
    this.#closeEvents?.();
    this.#closeEvents = null;
  }

  #retryLater(): void {
    if (this.#stopped) return;
    this.#retryTimer = setTimeout(() => this.#connect(), backoff(this.#attempt++, this.#ports.random()));
  }

  #requestFetch(delay: number): void {
    if (this.#fetching) {
      this.#again = true;
      return;
    }
    if (delay > 0 && this.#fetchTimer !== undefined) return;
    clearTimeout(this.#fetchTimer);
    this.#fetchTimer = setTimeout(() => void this.#fetch(), delay);
  }

  async #fetch(): Promise<void> {
    this.#fetchTimer = undefined;
    this.#fetching = true;
    this.#toldMeanwhile = null;
    this.#fetchedAt = this.#ports.now();
    try {
      const state = await this.#ports.fetchState();
      const down = state.broker.state === 'offline';
      this.#set({
        phase: down ? 'offline' : 'live',
        state,
        offlineSince: down ? this.#since() : null,
        reason: '',
      });
    } catch (error) {
      if (error instanceof Refused) this.#set({ phase: 'refused' });
      else this.#lost(error instanceof Failed ? error.message : '');
    } finally {
      this.#fetching = false;
    }
    const isBehind = this.#toldMeanwhile !== null && this.#toldMeanwhile !== this.snapshot.state?.revision;
    if (this.#stopped || !(this.#again || isBehind)) return;
    this.#again = false;
    this.#requestFetch(COALESCE);
  }

  #lost(reason: string): void {
    this.#set({ phase: 'offline', offlineSince: this.#since(), reason });
    // An open stream without a state to show is no connection either.
    if (this.#closeEvents === null) return;
    this.#disconnect();
    this.#retryLater();
  }

  #since(): number {
    return this.snapshot.offlineSince ?? this.#ports.now();
  }

  #set(change: Partial<Snapshot>): void {
    if (this.#stopped) return;
    this.snapshot = { ...this.snapshot, ...change };
    this.#onChange(this.snapshot);
  }
}

/** The real event stream of the dashboard. */
export function openEventSource(port: EventPort): () => void {
  const source = new EventSource('/api/events');
  source.addEventListener('open', () => port.onOpen());
  source.addEventListener('error', () => port.onError());
  source.addEventListener('state', (event) => {
    const { revision } = JSON.parse((event as MessageEvent<string>).data) as { revision: number };
    port.onRevision(revision);
  });
  source.addEventListener('storage', (event) => {
    const { running } = JSON.parse((event as MessageEvent<string>).data) as { running: Work | null };
    port.onWork(running);
  });
  return () => source.close();
}
