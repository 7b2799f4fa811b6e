import { describe, expect, it } from 'vitest';
import { approval, message, need, peer, run } from '../../lib/sample';
import { atWork, runsWords, type WorkFacts } from './work';

const facts = (over: Partial<WorkFacts> = {}): WorkFacts => ({
  peers: [],
  runs: [],
  approvals: [],
  needs: [],
  work: {},
  last: new Map(),
  ...over,
});

describe('PGE-07 who is at work, on what, since when', () => {
  it('has who waits first, then who works, each group by how long, and no idle one', () => {
    const lines = atWork(
      facts({
        peers: [
          peer({ id: '1', name: 'idle' }),
          peer({ id: '2', name: 'short', state: 'busy' }),
          peer({ id: '3', name: 'long', state: 'busy' }),
          peer({ id: '4', name: 'unknown', state: 'busy' }),
          peer({ id: '5', name: 'asks' }),
        ],
        needs: [need({ id: 'question:q', by: 'asks', since: 400, title: 'asks asks: Which port?' })],
        work: {
          '2': [
            { from: 10, to: 20 },
            { from: 300, to: null },
          ],
          '3': [{ from: 200, to: null }],
          '4': [{ from: 1, to: 2 }],
        },
        last: new Map([['long', message({ body: 'The parser is next.' })]]),
      }),
    );
    expect(lines.map(({ name, waits, since, doing }) => [name, waits, since, doing])).toEqual([
      ['asks', true, 400, 'asks: Which port?'],
      ['long', false, 200, 'The parser is next.'],
      ['short', false, 300, ''],
      ['unknown', false, null, ''],
    ]);
  });

  it('tells of a session by its oldest need, and of one whose child works', () => {
    const lines = atWork(
      facts({
        peers: [
          peer({ id: '1', name: 'asks' }),
          peer({ id: '2', name: 'leads', children: [{ id: 'c', title: 'Read the tests', state: 'busy' }] }),
        ],
        needs: [
          need({ id: 'question:b', by: 'asks', since: 9, title: 'asks asks: Later?' }),
          need({ id: 'question:a', by: 'asks', since: 3, title: 'asks asks: Sooner?' }),
        ],
      }),
    );
    expect(lines.map(({ name, doing, since }) => [name, doing, since])).toEqual([
      ['asks', 'asks: Sooner?', 3],
      ['leads', 'Read the tests', null],
    ]);
  });

  it('tells of a job what it does or what holds it up, and leaves out those in line and ended', () => {
    const lines = atWork(
      facts({
        runs: [
          run({ job: 'works', title: 'Works', step: 'go test', startedAt: 50 }),
          run({ job: 'asks', title: 'Asks', status: 'waiting', wait: { for: 'approval' }, startedAt: 1 }),
          run({ job: 'spent', title: 'Spent', status: 'waiting', wait: { for: 'budget' }, startedAt: 2 }),
          run({ job: 'retries', title: 'Retries', status: 'waiting', wait: { for: 'retry' }, startedAt: 60 }),
          run({ job: 'queued', status: 'queued' }),
          run({ job: 'done', status: 'finished', endedAt: 9 }),
        ],
        approvals: [
          approval({ id: 'old', job: 'asks', askedAt: 5, state: 'applied' }),
          approval({ job: 'asks', askedAt: 80 }),
        ],
        needs: [need({ id: 'job-asks:spent:budget:s-1', sort: 'job-asks', since: 70 })],
      }),
    );
    expect(lines.map(({ name, waits, doing, since }) => [name, waits, doing, since])).toEqual([
      ['Spent', true, 'has spent what it was given', 70],
      ['Asks', true, 'asks for permission: rm -rf build', 80],
      ['Works', false, 'go test', 50],
      ['Retries', false, 'waits to ask its provider again', 60],
    ]);
    expect(lines.map(({ link }) => link)[0]).toBe('#/runs/spent');
  });
});

describe('where the broker runs', () => {
  it.each([
    ['serve', 'running in a terminal'],
    ['background', 'running in the background'],
    ['desktop', 'running in the desktop app'],
    ['service', 'running as a service'],
    ['', 'running'],
  ])('%s', (host, words) => {
    expect(runsWords(host)).toBe(words);
  });
});
