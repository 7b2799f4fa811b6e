import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  DRAFT_LIFE,
  dropOldDrafts,
  isNewStorage,
  keepDraft,
  keptDraft,
  keptText,
  keptTexts,
  SHARE_PAUSE,
  shareDrafts,
  shareWaiting,
  type SharedDraft,
} from './drafts';

afterEach(() => {
  vi.restoreAllMocks();
  localStorage.clear();
});

describe('CHT-17 drafts that are kept', () => {
  it.each([
    ['a text', 'half a thought', 'half a thought'],
    ['several values', { at: 1, words: ['a'] }, { at: 1, words: ['a'] }],
    ['an emptied text', '', undefined],
    ['what was sent', null, undefined],
  ])('%s', (_, value, want) => {
    keepDraft('chat:a', 'before');
    keepDraft('chat:a', value);
    expect(keptDraft('chat:a')).toEqual(want);
    expect(keptDraft('chat:b')).toBeUndefined();
  });

  it.each([
    ['no JSON', '{', '', []],
    ['another form', '"x"', '', []],
    ['a number', '{"at":1,"value":3}', '', []],
    ['mixed texts', '{"at":1,"value":["a",3]}', '', ['a', '']],
    ['a text', '{"at":1,"value":"a"}', 'a', []],
  ])('%s is read or counts as none', (_, stored, text, texts) => {
    localStorage.setItem('bridge.draft.x', stored);
    expect(keptText('x')).toBe(text);
    expect(keptTexts('x')).toEqual(texts);
  });

  it('are dropped after their life, and nothing else is', () => {
    localStorage.setItem('bridge.theme', 'dark');
    localStorage.setItem('bridge.draft.bad', '{');
    keepDraft('chat:a', 'x');
    const { at } = JSON.parse(localStorage.getItem('bridge.draft.chat:a') ?? '') as { at: number };
    dropOldDrafts(at + DRAFT_LIFE);
    expect(keptText('chat:a')).toBe('x');
    dropOldDrafts(at + DRAFT_LIFE + 1);
    expect(Object.keys(localStorage)).toEqual(['bridge.theme']);
  });

  it('are none where the browser has no storage', () => {
    vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new DOMException('full', 'QuotaExceededError');
    });
    vi.spyOn(Storage.prototype, 'getItem').mockImplementation(() => {
      throw new DOMException('denied', 'SecurityError');
    });
    keepDraft('x', 'y');
    expect(keptText('x')).toBe('');
  });
});

describe('PGE-03 drafts that Bridge keeps', () => {
  /** A Bridge with those drafts, and what it was told. */
  function bridge(drafts: SharedDraft[]) {
    const told: [string, unknown, boolean][] = [];
    const set = (key: string, value: unknown, leaving: boolean) => {
      told.push([key, value, leaving]);
      return Promise.resolve();
    };
    return { told, link: { list: () => Promise.resolve(drafts), set } };
  }
  const store = (key: string, kept: object) =>
    localStorage.setItem(`bridge.draft.${key}`, JSON.stringify(kept));

  it('come to a browser that has none', async () => {
    expect(isNewStorage()).toBe(true);
    await shareDrafts(bridge([{ key: 'chat:a', at: 5, value: 'typed elsewhere' }]).link);
    expect(keptText('chat:a')).toBe('typed elsewhere');
    expect(isNewStorage()).toBe(false);
  });

  it.each([
    ['the newer one of Bridge', 5, 6, 'theirs'],
    ['the newer one of the browser', 7, 6, 'ours'],
    ['ours of the same time', 6, 6, 'ours'],
  ])('%s wins', async (_, ours, theirs, want) => {
    store('chat:a', { at: ours, value: 'ours' });
    await shareDrafts(bridge([{ key: 'chat:a', at: theirs, value: 'theirs' }]).link);
    expect(keptText('chat:a')).toBe(want);
  });

  it('go to Bridge where only the browser has them, and are dropped where they were sent elsewhere', async () => {
    store('chat:new', { at: 5, value: 'new' });
    store('chat:sent', { at: 5, value: 'sent', shared: true });
    const { told, link } = bridge([]);
    await shareDrafts(link);
    expect(told).toEqual([['chat:new', 'new', false]]);
    expect(keptText('chat:new')).toBe('new');
    expect(keptText('chat:sent')).toBe('');
  });

  it('stay where Bridge does not answer', async () => {
    store('chat:a', { at: 5, value: 'kept', shared: true });
    await shareDrafts({ list: () => Promise.reject(new Error('away')), set: () => Promise.resolve() });
    expect(keptText('chat:a')).toBe('kept');
  });

  it('are told once typing pauses, and at once when the page is closed', async () => {
    vi.useFakeTimers();
    const { told, link } = bridge([]);
    await shareDrafts(link);
    keepDraft('chat:a', 'h');
    keepDraft('chat:a', 'hello');
    await vi.advanceTimersByTimeAsync(SHARE_PAUSE - 1);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(told).toEqual([['chat:a', 'hello', false]]);
    keepDraft('chat:a', null);
    shareWaiting();
    await vi.advanceTimersByTimeAsync(SHARE_PAUSE);
    expect(told).toEqual([
      ['chat:a', 'hello', false],
      ['chat:a', null, true],
    ]);
    vi.useRealTimers();
  });
});
