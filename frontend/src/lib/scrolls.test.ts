import { beforeEach, describe, expect, it } from 'vitest';
import { Scrolls } from './scrolls';

/** A browser's history: back and forward give an entry the state that it was left with. */
class Entries {
  states: unknown[] = [null];
  at = 0;

  go(to: number) {
    this.states[this.at] = history.state;
    this.at = to;
    history.replaceState(this.states[to] ?? null, '');
  }
}

describe('PGE-10 back shows a page where it was', () => {
  let entries: Entries;
  let scrolls: Scrolls;
  beforeEach(() => {
    history.replaceState(null, '');
    entries = new Entries();
    scrolls = new Scrolls();
  });

  it('knows how far each entry was scrolled, back and forward', () => {
    scrolls.note(400);
    entries.go(1);
    expect(scrolls.enter(false)).toBeNull();
    scrolls.note(30);
    entries.go(0);
    expect(scrolls.enter(false)).toBe(400);
    entries.go(1);
    expect(scrolls.enter(false)).toBe(30);
  });

  it('starts a new entry of the same page where that is, and one of another page at its top', () => {
    scrolls.note(400);
    entries.go(1);
    scrolls.enter(true); // the details of a message
    entries.go(2);
    scrolls.enter(false);
    entries.go(1);
    expect(scrolls.enter(false)).toBe(400);
    entries.go(2);
    expect(scrolls.enter(false)).toBeNull();
  });

  it('numbers on after a reload, which knows no place of before', () => {
    scrolls.note(400);
    scrolls = new Scrolls();
    entries.go(1);
    expect(scrolls.enter(false)).toBeNull();
    scrolls.note(5);
    entries.go(0);
    expect(scrolls.enter(false)).toBeNull();
    entries.go(1);
    expect(scrolls.enter(false)).toBe(5);
  });
});
