// A job's log as it is read: by byte offset from where it was left, so that each
// byte comes once. A long one begins near its end.

import { api } from '../../lib/api';
import { LogReader, type Piece } from './log';

/** How much of a long log is read at first, in bytes. */
export const TAIL = 256 * 1024;

export class RunLog {
  pieces: Piece[] = $state.raw([]);
  /** The same without any meaning. */
  raw = $state('');
  /** Bytes that stand before what is shown. */
  before = $state(0);
  size = $state(0);
  /** Why the last reading failed; null until it was read once. */
  problem: string | null = $state(null);
  #name: string;
  #next = -1;
  #reader = new LogReader();
  #reading: Promise<void> | null = null;
  #again = false;

  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Reads what is new. Those who ask while it reads share the one reading after that:
   * what they heard of may have come too late for this one.
   */
  read(): Promise<void> {
    this.#again = true;
    this.#reading ??= this.#readAll();
    return this.#reading;
  }

  async #readAll(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      await this.#read();
    }
    this.#reading = null; // in the same step: no one asks in between
  }

  /** Begins anew with the log's first byte. */
  async fromStart(): Promise<void> {
    await this.#reading;
    this.#begin(0);
    await this.read();
  }

  #begin(at: number): void {
    this.#reader = new LogReader();
    this.pieces = [];
    this.raw = '';
    this.#next = this.before = at;
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        const { text, next, size } = await api.runLog(this.#name, Math.max(0, this.#next));
        this.size = size;
        this.problem = '';
        if (this.#next < 0 && size - next > TAIL) {
          this.#begin(size - TAIL);
          continue;
        }
        if (next > this.#next) this.#take(text, next);
        else return;
        if (next >= size) return;
      }
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }

  #take(text: string, next: number): void {
    // What begins in the middle begins at its first whole line.
    const cut = this.before > 0 && this.raw === '' ? text.indexOf('\n') + 1 : 0;
    this.#next = next;
    const whole = text.slice(cut);
    this.raw += whole;
    this.#reader.push(whole);
    this.pieces = this.#reader.pieces;
  }
}
