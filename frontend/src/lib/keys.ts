// The keys of the whole page. `Keys` only decides what a key means; App does it.

import type { Place } from './route';

export type Action =
  | { do: 'go'; to: Place['page'] }
  | { do: 'search' | 'compose' | 'reply' | 'next' | 'previous' | 'close' | 'help' | 'allow' | 'deny' }
  | { do: 'change' | 'file'; by: 1 | -1 }
  | { do: 'choose'; option: string };

/** How long `g` waits for its second key, in ms. */
export const CHORD = 1500;

const GO: Record<string, Place['page']> = {
  n: 'needs',
  o: 'overview',
  s: 'sessions',
  d: 'decisions',
  r: 'runs',
  f: 'search',
  t: 'storage',
  p: 'network',
  ',': 'settings',
};

const SINGLE: Record<string, Action> = {
  '/': { do: 'search' },
  c: { do: 'compose' },
  r: { do: 'reply' },
  a: { do: 'allow' },
  d: { do: 'deny' },
  j: { do: 'next' },
  k: { do: 'previous' },
  n: { do: 'change', by: 1 },
  p: { do: 'change', by: -1 },
  ']': { do: 'file', by: 1 },
  '[': { do: 'file', by: -1 },
  1: { do: 'choose', option: '1' },
  2: { do: 'choose', option: '2' },
  3: { do: 'choose', option: '3' },
  4: { do: 'choose', option: '4' },
  Escape: { do: 'close' },
  '?': { do: 'help' },
};

export const SHEET: readonly { keys: string[]; does: string; range?: true }[] = [
  { keys: ['j', 'k'], does: 'next, previous in the list' },
  { keys: ['n', 'p'], does: 'next, previous change of a job' },
  { keys: [']', '['], does: 'next, previous changed file' },
  { keys: ['Enter'], does: 'open what has the focus' },
  { keys: ['Esc'], does: 'close, or leave a text field' },
  { keys: ['Ctrl', 'K'], does: 'go to or do anything (⌘ K on a Mac)' },
  { keys: ['/'], does: 'search, on this page or in everything' },
  { keys: ['c'], does: 'write a message' },
  { keys: ['r'], does: 'answer the message that is open or has the focus' },
  { keys: ['Ctrl', 'Enter'], does: 'send it (⌘ Enter on a Mac)' },
  { keys: ['a'], does: 'allow what is asked (then Enter)' },
  { keys: ['d'], does: 'deny it (then say why)' },
  { keys: ['1', '4'], range: true, does: 'the answer of that number (then Enter)' },
  { keys: ['g', 'n'], does: 'go to Needs you' },
  { keys: ['g', 'o'], does: 'go to Overview' },
  { keys: ['g', 's'], does: 'go to Sessions' },
  { keys: ['g', 'd'], does: 'go to Decisions' },
  { keys: ['g', 'r'], does: 'go to Runs' },
  { keys: ['g', 'f'], does: 'go to Search' },
  { keys: ['g', 't'], does: 'go to Storage' },
  { keys: ['g', 'p'], does: 'go to Network (paired PCs)' },
  { keys: ['g', ','], does: 'go to Settings' },
  { keys: ['?'], does: 'this sheet' },
];

export class Keys {
  #chordSince: number | null = null;

  /** What this key means at this time, or null for nothing. */
  press(key: string, now: number): Action | null {
    const inChord = this.#chordSince !== null && now - this.#chordSince <= CHORD;
    this.#chordSince = null;
    const target = GO[key];
    if (inChord && target !== undefined) return { do: 'go', to: target };
    if (key === 'g') this.#chordSince = now;
    return SINGLE[key] ?? null;
  }
}
