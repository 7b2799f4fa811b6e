import { describe, expect, it } from 'vitest';
import type { Peer, Run } from '../../lib/api';
import { matching, named, offers } from './palette';

const peer = (name: string) => ({ name, cwd: `/src/${name.split('-')[0] ?? ''}` }) as Peer;
const run = (job: string, title: string, endedAt: number | null) => ({ job, title, endedAt }) as Run;
const peers = ['mobile-54', 'mobile-5', 'api-9'].map(peer);
const runs = [run('codex-job-1', 'Old work', 1), run('codex-job-2', 'Mend the parser', null)];
const topics = ['release', 'error format'];

describe('PGE-06 the command palette', () => {
  const all = offers(peers, runs, topics);
  const labels = (typed: string, most = 3) => matching(all, typed, most).map((item) => item.label);

  it.each([
    ['mob', ['mobile-5', 'mobile-54', 'Write to mobile-5…']],
    ['wri api', ['Write to api-9…']],
    ['par', ['Mend the parser']],
    ['pai', ['Pair a PC…']],
    ['bac', ['Back up now']],
    ['ans', ['Answer the next thing that needs you']],
    ['job-2', ['Mend the parser']],
    ['err', ['error format']],
    ['set', ['Settings']],
    ['zzz', []],
  ])('“%s” in three letters', (typed, want) => {
    expect(labels(typed)).toEqual(want);
  });

  it('offers the pages before anything is typed', () => {
    expect(labels('', 2)).toEqual(['Needs you', 'Overview']);
  });

  it('names what goes on before what has ended', () => {
    expect(named([], runs, []).map((item) => item.label)).toEqual(['Mend the parser', 'Old work']);
  });
});
