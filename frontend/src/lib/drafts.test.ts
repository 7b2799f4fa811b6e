import { afterEach, describe, expect, it, vi } from 'vitest';
import { DRAFT_LIFE, dropOldDrafts, keepDraft, keptDraft, keptText, keptTexts } from './drafts';

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
