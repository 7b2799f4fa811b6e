import { afterEach, describe, expect, it, vi } from 'vitest';
import { api, Failed, type Hit } from '../../lib/api';
import { WordSearch } from './search.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const hit = (id: string): Hit => ({
  kind: 'message',
  id,
  at: 1,
  author_name: 'a',
  author_agent: 'claude',
  to_target: 'b',
  recipients: 'b',
  topic: '',
  current: false,
  said: '',
  snippet: [{ text: id, hit: true }],
  link: '#/overview?m=1',
});

describe('DSK-06 full-text search', () => {
  it('asks for words of a kind, and for more until there are none', async () => {
    const page = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => hit(`m-${from + i}`));
    const asked = vi
      .spyOn(api, 'search')
      .mockResolvedValueOnce({ results: page(0, 30), behind: 0, next: '30.9' })
      .mockResolvedValueOnce({ results: page(29, 130), behind: 0, next: '130.9' })
      .mockResolvedValueOnce({ results: page(130, 140), behind: 0, next: '' });
    const search = new WordSearch();
    search.query = ' port ';
    search.kind = 'message';
    await search.ask(search.query, search.kind);
    expect(asked).toHaveBeenLastCalledWith('port', { kind: 'message', limit: 30 });
    expect([search.answered, search.more]).toEqual(['port', true]);
    await search.loadMore();
    expect(asked).toHaveBeenLastCalledWith('port', { kind: 'message', limit: 100, cursor: '30.9' });
    expect([search.found?.length, search.more]).toEqual([130, true]);
    await search.loadMore();
    expect(asked).toHaveBeenLastCalledWith('port', { kind: 'message', limit: 100, cursor: '130.9' });
    expect([search.found?.length, search.more]).toEqual([140, false]);
    expect(search.found?.map((h) => h.id)).toEqual(page(0, 140).map((h) => h.id));
    // What goes on in Bridge meanwhile does not take the pages away; another question does.
    await search.refresh(search.query, search.kind);
    expect(asked).toHaveBeenCalledTimes(3);
    asked.mockResolvedValueOnce({ results: page(0, 5), behind: 0, next: '' });
    await search.refresh(search.query, 'decision');
    expect(search.found?.length).toBe(5);
  });

  it('throws away what a newer question overtook, keeps what is shown when one fails', async () => {
    let late: (v: { results: Hit[]; behind: number; next: string }) => void = () => undefined;
    vi.spyOn(api, 'search')
      .mockReturnValueOnce(new Promise((resolve) => (late = resolve)))
      .mockResolvedValueOnce({ results: [hit('new')], behind: 0, next: '' })
      .mockRejectedValueOnce(new Failed('there is no index'));
    const search = new WordSearch();
    const first = search.ask('a', '');
    await search.ask('ab', '');
    late({ results: [hit('old')], behind: 0, next: '' });
    await first;
    expect(search.found?.map((h) => h.id)).toEqual(['new']);
    await search.ask('abc', '');
    expect([search.found?.map((h) => h.id), search.problem]).toEqual([['new'], 'there is no index']);
    await search.ask('', '');
    expect([search.found, search.problem]).toEqual([null, '']);
  });

  it('looks again while new rows are not searched yet', async () => {
    vi.useFakeTimers();
    const asked = vi
      .spyOn(api, 'search')
      .mockResolvedValueOnce({ results: [], behind: 3, next: '' })
      .mockResolvedValueOnce({ results: [hit('fresh')], behind: 0, next: '' });
    const search = new WordSearch();
    await search.ask('x', '');
    expect(search.behind).toBe(3);
    await vi.advanceTimersByTimeAsync(2000);
    expect(asked).toHaveBeenCalledTimes(2);
    expect([search.found?.length, search.behind]).toEqual([1, 0]);
  });
});
