import { describe, expect, it } from 'vitest';
import type { RunTurn } from '../../lib/api';
import { run } from '../../lib/sample';
import {
  byHand,
  cost,
  duration,
  elapsed,
  evidenceLine,
  filterRuns,
  groupRuns,
  layerWords,
  lineWords,
  networkWords,
  NO_FILTER,
  progressWords,
  reachWords,
  reasonWords,
  saidStatus,
  splitTurns,
  stateWord,
  tokens,
  totalTime,
  waitsForWord,
  type Tree,
} from './runs';

const names = (trees: Tree[]): unknown[] =>
  trees.map((t) => (t.children.length === 0 ? t.run.job : [t.run.job, ...names(t.children)]));

describe('DSK-06 the list of jobs', () => {
  const asks = { status: 'waiting', wait: { for: 'approval' } } as const;

  it('puts who waits for the owner first, and who waits longest before the others', () => {
    const groups = groupRuns([
      run({ job: 'new', startedAt: 30 }),
      run({ job: 'line', status: 'queued', startedAt: null }),
      run({ job: 'late', ...asks, startedAt: 20 }),
      run({ job: 'early', ...asks, startedAt: 10 }),
      run({ job: 'retries', status: 'waiting', wait: { for: 'retry' }, startedAt: 5 }),
      run({ job: 'over', status: 'failed', endedAt: 40 }),
      run({ job: 'later', status: 'finished', endedAt: 50 }),
    ]);
    expect(names(groups.waiting)).toEqual(['early', 'late']);
    expect(names(groups.atWork)).toEqual(['line', 'new', 'retries']);
    expect(names(groups.ended)).toEqual(['later', 'over']);
  });

  it('JOB-22 shows a job under the one that gave it, where the most urgent of them belongs', () => {
    const groups = groupRuns([
      run({ job: 'child', by: 'parent', ...asks }),
      run({ job: 'grandchild', by: 'child', status: 'finished', endedAt: 5 }),
      run({ job: 'parent', by: 'claude-api', status: 'finished', endedAt: 9 }),
      run({ job: 'orphan', by: 'gone-job', status: 'finished', endedAt: 7 }),
    ]);
    expect(names(groups.waiting)).toEqual([['parent', ['child', 'grandchild']]]);
    expect(names(groups.ended)).toEqual(['orphan']);
  });

  it('narrows by each of its filters, and by all at once', () => {
    const runs = [
      run({ job: 'a', title: 'Fix the Parser', agent: 'codex', by: 'api', status: 'failed' }),
      run({ job: 'b', title: 'Write docs', agent: 'claude', by: 'web', branch: 'bridge/b' }),
    ];
    const left = (filter: Partial<typeof NO_FILTER>) =>
      filterRuns(runs, { ...NO_FILTER, ...filter }).map((r) => r.job);
    expect(left({})).toEqual(['a', 'b']);
    expect(left({ text: ' parser ' })).toEqual(['a']);
    expect(left({ text: 'BRIDGE/' })).toEqual(['b']);
    expect(left({ agent: 'claude' })).toEqual(['b']);
    expect(left({ by: 'api' })).toEqual(['a']);
    expect(left({ outcome: 'failed' })).toEqual(['a']);
    expect(left({ outcome: 'failed', by: 'web' })).toEqual([]);
  });

  it('groups and narrows thousands at once', () => {
    const many = Array.from({ length: 20_000 }, (_, i) =>
      run({ job: `j${i}`, by: i % 3 === 0 ? 'api' : `j${i - 1}`, status: 'finished', endedAt: i }),
    );
    const began = performance.now();
    expect(groupRuns(filterRuns(many, { ...NO_FILTER, text: 'parser' })).ended).toHaveLength(6667);
    expect(performance.now() - began).toBeLessThan(1000);
  });
});

describe('a job in words', () => {
  it('waits for a word unless its provider is asked again', () => {
    expect(waitsForWord(run({ status: 'waiting', wait: { for: 'retry' } }))).toBe(false);
    expect(waitsForWord(run({ status: 'waiting', wait: { for: 'budget' } }))).toBe(true);
    expect(waitsForWord(run({ status: 'running' }))).toBe(false);
  });

  it.each([
    [8_999, '8 s'],
    [65_000, '1 min 05 s'],
    [3_660_000, '1 h 01 min'],
  ])('%d ms took %s', (ms, words) => expect(duration(ms)).toBe(words));

  it('counts the time until its end, and none in line', () => {
    expect(elapsed(run({ startedAt: 1000 }), 3000)).toBe(2000);
    expect(elapsed(run({ startedAt: 1000, endedAt: 1500 }), 3000)).toBe(500);
    expect(elapsed(run({ startedAt: null }), 3000)).toBeNull();
  });

  it.each([
    [0, ''],
    [0.004, 'under $0.01'],
    [1.239, '$1.24'],
  ])('%d costs %j', (usd, words) => expect(cost(usd)).toBe(words));

  it.each([
    [0, ''],
    [1, '1 token'],
    [999, '999 tokens'],
    [1234, '1.2k tokens'],
    [12_600, '13k tokens'],
    [999_600, '1.0M tokens'],
  ])('%d are %j', (n, words) => expect(tokens(n)).toBe(words));

  it('JOB-20 says how far it is, as far as it said so', () => {
    const progress = { percent: 40, etaMinutes: 5, note: 'fixing' };
    expect(progressWords(run({ progress }))).toBe('40 % · about 5 min left · fixing');
    expect(progressWords(run({ progress: { percent: null, etaMinutes: 0, note: '' } }))).toBe('about done');
    expect(progressWords(run())).toBe('');
  });

  it('JOB-15 sums up what the runner saw', () => {
    expect(
      evidenceLine({
        base: '',
        head: '',
        files: [{ path: 'a', status: 'M', added: 1, removed: 0 }],
        commands: [
          { command: 'x', exit: 1 },
          { command: 'y', exit: null },
        ],
        tokens: 0,
        costUsd: 0.5,
        durationMs: 61_000,
        ended: 'answer',
        layer: '',
      }),
    ).toBe('1 file · 2 commands, 1 failed · 1 min 01 s · $0.50');
  });

  it.each([
    ['read', 'sandbox', 'opencode', 'no network for its commands; opencode itself reaches'],
    ['read', 'sandbox-signals', 'opencode', 'no network for its commands; opencode itself reaches'],
    ['read', 'none', 'opencode', 'runs no commands; opencode itself reaches'],
    ['read', 'own', 'codex', 'no network for its commands'],
    ['read', 'sandbox', 'claude', 'by claude’s own rules'],
    ['read', 'sandbox', 'antigravity', 'its network is open'],
    ['read', '', 'opencode', ''],
    ['ask', 'none', 'opencode', ''],
    ['edit', 'sandbox', 'opencode', 'its network is open'],
    ['edit', 'sandbox', 'claude', 'asks before commands that reach the network'],
    ['edit', 'own', 'codex', 'no network for commands in its sandbox'],
  ] as const)(
    'JOB-14 says of %s under %s by %s how far the network is open',
    (access, layer, agent, words) =>
      words === ''
        ? expect(networkWords(access, layer, agent)).toBe('')
        : expect(networkWords(access, layer, agent)).toContain(words),
  );

  it.each([
    ['sandbox', 'in a sandbox of this system'],
    [
      'sandbox-signals',
      'in a sandbox of this system; before Linux 6.12, as here, the job can end your other programs',
    ],
    ['own', 'in codex’s own sandbox'],
    ['none', 'not in a sandbox, codex’s own rules only'],
    ['of a newer Bridge', ''],
  ])('SEC-08 says of the layer %s what holds', (layer, words) =>
    expect(layerWords(layer, 'codex')).toBe(words),
  );

  it('says why it ended, also by a word of a newer Bridge', () => {
    expect(reasonWords('context')).toContain('does not fit');
    expect(reasonWords('sunspots')).toBe('It ended: sunspots.');
    expect(reasonWords('')).toBe('');
  });

  it('JOB-05 says what words will do, and did', () => {
    expect(reachWords(run())).toContain('next safe step');
    expect(reachWords(run({ status: 'failed' }))).toContain('continues it');
    expect(reachWords(run({ status: 'waiting', wait: { for: 'approval' } }))).toContain(
      'waiting for permission',
    );
    expect(saidStatus({ job: 'j', status: 'queued', delivery: 'queued' }).words).toContain('in line');
    expect(saidStatus({ job: 'j', status: 'running', delivery: 'running' }).outcome).toBe('queued');
  });

  it('continues by hand only what has a session', () => {
    expect(byHand(run({ session: '' }))).toBe('');
    expect(byHand(run({ session: 's' }))).toBe('codex resume s');
    expect(byHand(run({ agent: 'acp', session: 's' }))).toBe('');
  });
});

describe('RMT-13 RMT-15 the word of how a run stands', () => {
  it.each([
    [{ status: 'running' }, 'running'],
    [{ status: 'queued' }, 'in line'],
    [{ status: 'waiting', wait: { for: 'approval' } }, 'waits for you'],
    [{ status: 'waiting', wait: { for: 'retry' } }, 'retries'],
    [{ status: 'running', doubt: 'not heard of since 14:02' }, 'running?'],
    [{ status: 'starting', doubt: 'desk did not say' }, 'starting?'],
    [{ status: 'finished' }, 'finished'],
  ] as const)('%j: %s', (over, word) => {
    expect(stateWord(run(over))).toBe(word);
  });
});

describe('JOB-09 why a job stands in line', () => {
  const queued = run({ job: 'q', status: 'queued' });
  const other = run({ job: 'o', title: 'Fix the parser' });
  const session = 'waits until Fix the parser has ended: both work in one session of codex';
  const remote = { host: 'desk', name: 'codex-job-1' };
  it.each([
    ['nothing else runs', queued, [queued], 'waits for a free slot'],
    ['another one works in its session', queued, [queued, other], session],
    ['that one waits for an answer', queued, [{ ...other, status: 'waiting' as const }], session],
    ['that one has ended', queued, [{ ...other, status: 'finished' as const }], 'waits for a free slot'],
    [
      'that one stands in line, too',
      queued,
      [{ ...other, status: 'queued' as const }],
      'waits for a free slot',
    ],
    ['that one has another session', queued, [{ ...other, session: 's-2' }], 'waits for a free slot'],
    ['that one is of another kind', queued, [{ ...other, agent: 'claude' }], 'waits for a free slot'],
    [
      'that one is of another agent of its kind',
      queued,
      [{ ...other, called: 'x' }],
      'waits for a free slot',
    ],
    [
      'it has no session yet',
      { ...queued, session: '' },
      [{ ...other, session: '' }],
      'waits for a free slot',
    ],
    ['that one is on another PC', queued, [{ ...other, remote }], 'waits for a free slot'],
    ['it is on another PC', { ...queued, remote }, [other], 'waits for a free slot'],
  ])('%s', (_, job, runs, words) => {
    expect(lineWords(job, runs)).toBe(words);
  });
});

describe('PGE-05 a job is a conversation', () => {
  const turn = (run: number, text: string, status: RunTurn['status'] = 'finished'): RunTurn => ({
    run,
    message: `message ${run}`,
    by: [],
    status,
    ended: 'answer',
    text,
    error: text === '' ? 'no account' : '',
    at: null,
    durationMs: 1000 * run,
    tokens: 0,
    costUsd: 0,
  });

  it.each([
    ['no turn', [], [], null, null],
    ['the first one works', [turn(1, '', '')], [], null, null],
    ['one turn', [turn(1, 'a')], [], 1, null],
    ['two answers', [turn(1, 'a'), turn(2, 'b')], [1], 2, null],
    ['the second one works', [turn(1, 'a'), turn(2, '', '')], [], 1, null],
    ['a failed turn shows the answer before', [turn(1, 'a'), turn(2, '', 'failed')], [1], 2, 1],
    ['two failed turns', [turn(1, 'a'), turn(2, '', 'failed'), turn(3, '', 'failed')], [1, 2], 3, 1],
    ['no answer at all', [turn(1, '', 'failed'), turn(2, '', 'failed')], [1], 2, null],
  ])('%s', (_, turns, earlier, last, open) => {
    const split = splitTurns(turns);
    expect(split.earlier.map((t) => t.run)).toEqual(earlier);
    expect(split.last?.run ?? null).toBe(last);
    expect(split.open).toBe(open);
  });

  it('adds up the time', () => {
    expect(totalTime([turn(1, 'a'), turn(2, 'b')])).toBe(3000);
  });
});
