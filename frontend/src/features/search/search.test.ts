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
  snippet: [{ text: id, hit: true }],
  link: '#/overview?m=1',
});

describe('DSK-06 full-text search', () => {
  it('asks for words of a kind, and for more', async () => {
    const asked = vi
      .spyOn(api, 'search')
      .mockResolvedValueOnce({ results: Array.from({ length: 30 }, (_, i) => hit(`m-${i}`)), behind: 0 })
      .mockResolvedValueOnce({ results: [hit('m-1')], behind: 0 });
    const search = new WordSearch();
    search.query = ' port ';
    search.kind = 'message';
    await search.ask(search.query, search.kind);
    expect(asked).toHaveBeenLastCalledWith('port', { kind: 'message', limit: 30 });
    expect([search.answered, search.more]).toEqual(['port', true]);
    await search.loadMore();
    expect(asked).toHaveBeenLastCalledWith('port', { kind: 'message', limit: 100 });
    expect([search.found?.length, search.more]).toEqual([1, false]);
  });

  it('throws away what a newer question overtook, keeps what is shown when one fails', async () => {
    let late: (v: { results: Hit[]; behind: number }) => void = () => undefined;
    vi.spyOn(api, 'search')
      .mockReturnValueOnce(new Promise((resolve) => (late = resolve)))
      .mockResolvedValueOnce({ results: [hit('new')], behind: 0 })
      .mockRejectedValueOnce(new Failed('there is no index'));
    const search = new WordSearch();
    const first = search.ask('a', '');
    await search.ask('ab', '');
    late({ results: [hit('old')], behind: 0 });
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
      .mockResolvedValueOnce({ results: [], behind: 3 })
      .mockResolvedValueOnce({ results: [hit('fresh')], behind: 0 });
    const search = new WordSearch();
    await search.ask('x', '');
    expect(search.behind).toBe(3);
    await vi.advanceTimersByTimeAsync(2000);
    expect(asked).toHaveBeenCalledTimes(2);
    expect([search.found?.length, search.behind]).toEqual([1, 0]);
  });
});
