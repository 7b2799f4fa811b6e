// The last doctor report, and the search through all stored messages.

import {
  api,
  type ArchiveMessage,
  type DoctorReport,
  type Work,
  type WorkAction,
  type Works,
} from '../../lib/api';
import { Loaded } from '../../lib/loaded.svelte';
import { page } from '../../lib/page.svelte';
import { summarize } from './storage';

class Storage {
  readonly report = new Loaded<DoctorReport>();
  checking = $state(false);
  /** The state's numbers at the last look. */
  #checkedAt = $state('null');

  /** The newest numbers that are known: the report's until the state tells others. */
  get summary() {
    const { value } = this.report;
    if (value !== null && this.#told === this.#checkedAt) return summarize(value);
    return page.state?.storage ?? null;
  }

  /** Whether this Bridge can tell about its storage. */
  get present(): boolean {
    return this.report.value !== null || page.state?.storage.ok != null;
  }

  /** Looks through the home, which takes time. */
  async check(): Promise<void> {
    this.#checkedAt = this.#told;
    this.checking = true;
    await this.report.load(api.storage);
    this.checking = false;
  }

  /** Looks unless the state's numbers are those of the last look. */
  refresh(): void {
    if (this.#told !== this.#checkedAt) void this.check();
  }

  get #told(): string {
    return JSON.stringify(page.state?.storage ?? null);
  }
}

export const storage = new Storage();

/** What maintenance was asked for, what runs and what came of it. */
class Maintenance {
  readonly works = new Loaded<Works>();
  /** Why the last thing asked for did not begin, or ''. */
  problem = $state('');

  /** The newest that is known of the running work: the events' word, or the last answer's. */
  get running(): Work | null {
    return page.work === undefined ? (this.works.value?.running ?? null) : page.work.running;
  }

  get hints(): Record<string, string> {
    return this.works.value?.hints ?? {};
  }

  async load(): Promise<void> {
    await this.works.load(api.works);
    // Events that were missed while the connection was lost do not come again.
    if (this.works.problem === '') page.work = { running: this.works.value?.running ?? null };
  }

  async start(action: WorkAction): Promise<void> {
    this.problem = '';
    try {
      await api.startWork(action, action !== 'check');
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
    await this.load();
  }
}

export const maintenance = new Maintenance();

/** How many messages are fetched at a time. */
const PAGE = 50;

/** The messages of all stores that hold a text, the newest first. */
export class ArchiveSearch {
  /** Null while nothing was asked. */
  found: ArchiveMessage[] | null = $state.raw(null);
  /** What `found` answers. */
  query = $state('');
  /** There are no older ones. */
  complete = $state(false);
  problem = $state('');
  #turn = 0;

  /** Asks anew; '' asks nothing. */
  async ask(query: string): Promise<void> {
    const turn = ++this.#turn;
    if (query === '') {
      this.found = null;
      this.query = '';
      this.problem = '';
      return;
    }
    await this.#fetch(turn, query, []);
  }

  async older(): Promise<void> {
    if (this.found !== null) await this.#fetch(++this.#turn, this.query, this.found);
  }

  async #fetch(turn: number, query: string, known: ArchiveMessage[]): Promise<void> {
    try {
      const oldest = known.at(-1)?.created_at;
      // The bound excludes its own millisecond, which other messages may share.
      const { messages } = await api.searchArchive(
        query,
        PAGE,
        oldest === undefined ? undefined : oldest + 1,
      );
      if (turn !== this.#turn) return;
      const more = messages.filter((m) => !known.some((k) => k.id === m.id));
      this.complete = messages.length < PAGE || more.length === 0;
      this.found = [...known, ...more];
      this.query = query;
      this.problem = '';
    } catch (error) {
      if (turn === this.#turn) this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}
