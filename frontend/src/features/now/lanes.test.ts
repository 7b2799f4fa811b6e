import { describe, expect, it } from 'vitest';
import type { Activity, ActivityMark, Way } from '../../lib/api';
import { approval, peer, question, run } from '../../lib/sample';
import {
  draw,
  firstOf,
  foldedWords,
  howFar,
  markAt,
  present,
  sentence,
  step,
  type Facts,
  type View,
} from './lanes';

const MINUTE = 60_000;
const NOW = new Date(2026, 10, 23, 12, 0, 0).getTime();
const ago = (minutes: number) => NOW - minutes * MINUTE;

/** 15 minutes in 900 pixels: one a second. */
const view = (over: Partial<View> = {}): View => ({
  from: ago(15),
  to: NOW,
  now: NOW,
  width: 900,
  about: '',
  all: false,
  ...over,
});

const activity = (over: Partial<Activity> = {}): Activity => ({
  since: ago(480),
  at: NOW,
  began: ago(480),
  work: {},
  messages: [],
  complete: true,
  ...over,
});

const way = (name: string, over: Partial<Way> = {}): Way => ({
  name,
  stage: 'durable',
  woken: null,
  read: null,
  ...over,
});

const said = (over: Partial<ActivityMark> = {}): ActivityMark => ({
  id: 'm-1',
  from: 'api',
  agent: 'claude',
  to: 'web',
  kind: 'message',
  at: ago(10),
  words: 'Which **port**?',
  ways: [way('web')],
  ...over,
});

const api = peer({ id: 'p-api', name: 'api', agent: 'claude', cwd: '/src/shop' });
const web = peer({ id: 'p-web', name: 'web', agent: 'codex', cwd: '/src/shop' });
const docs = peer({ id: 'p-docs', name: 'docs', agent: 'opencode', cwd: '/src/docs' });

const facts = (over: Partial<Facts> = {}): Facts => ({
  peers: [api, web],
  runs: [],
  approvals: [],
  questions: [],
  activity: activity(),
  ...over,
});

const marksOf = (f: Facts, v = view()) => draw(f, v).marks;

describe('DSK-06 lanes', () => {
  it('has a lane for each live session, in the order of the menu', () => {
    const { lanes, height } = draw(facts({ peers: [web, api, docs] }), view());
    expect(lanes.map((l) => [l.name, l.y, l.middle, l.height])).toEqual([
      ['docs', 22, 37, 30],
      ['api', 52, 67, 30],
      ['web', 82, 97, 30],
    ]);
    expect(height).toBe(116);
  });

  it('gives the owner a lane where something was said', () => {
    const words = said({ from: 'you', agent: 'owner', kind: 'owner' });
    const names = (v: View) =>
      draw(facts({ activity: activity({ messages: [words] }) }), v).lanes.map((l) => l.name);
    expect(names(view())).toEqual(['you', 'api', 'web']);
    expect(names(view({ from: ago(9) }))).toEqual(['api', 'web']);
  });

  it('folds quiet sessions together once there are more than eight', () => {
    const many = (n: number) => Array.from({ length: n }, (_, i) => peer({ id: `p-${i}`, name: `s-${i}` }));
    const work = Object.fromEntries([1, 3].map((i) => [`p-${i}`, [{ from: ago(5), to: ago(4) }]]));
    const folded = (n: number, all = false) =>
      draw(facts({ peers: many(n), activity: activity({ work }) }), view({ all }));
    expect(folded(8).lanes).toHaveLength(8);
    expect(folded(9).lanes.map((l) => l.name)).toEqual(['s-1', 's-3']);
    expect(foldedWords(folded(9).folded)).toBe('7 quiet sessions');
    expect(folded(9, true).lanes).toHaveLength(9);
    expect(foldedWords(folded(9, true).folded)).toBe('');
  });

  it('shows the eight that were active last, busy ones first', () => {
    const peers = Array.from({ length: 10 }, (_, i) => peer({ id: `p-${i}`, name: `s-${i}` }));
    const work = Object.fromEntries(peers.map((p, i) => [p.id, [{ from: ago(14), to: ago(10 - i) }]]));
    const busy = peers.map((p, i) => (i === 0 ? { ...p, state: 'busy' as const } : p));
    const picture = draw(facts({ peers: busy, activity: activity({ work }) }), view());
    expect(picture.lanes.map((l) => l.name)).toEqual([
      's-0',
      's-3',
      's-4',
      's-5',
      's-6',
      's-7',
      's-8',
      's-9',
    ]);
    expect(foldedWords(picture.folded)).toBe('2 more sessions with something in view');
  });

  it('is about one session and those that it deals with', () => {
    const messages = [said(), said({ id: 'm-2', from: 'docs', ways: [way('web')] })];
    const picture = draw(
      facts({ peers: [api, web, docs], activity: activity({ messages }) }),
      view({ about: 'api' }),
    );
    expect(picture.lanes.map((l) => l.name)).toEqual(['api', 'web']);
    expect(picture.marks.map((m) => m.key)).toEqual(['message m-1 web']);
  });
});

describe('DSK-06 marks', () => {
  it('draws work as bars from begin to end, cut at the view', () => {
    const work = {
      'p-api': [
        { from: ago(20), to: ago(14) },
        { from: ago(3), to: null },
      ],
    };
    const marks = marksOf(facts({ activity: activity({ work }) }));
    expect(marks.map((m) => [m.x, m.points[0]?.[0], m.open])).toEqual([
      [0, 60, false],
      [720, 900, true],
    ]);
    expect(sentence(marks[1] as never)).toBe('api, is at work, since 11:57, 3 min 00 s');
  });

  it('joins turns between which nothing could be seen', () => {
    const turns = (gap: number) => ({
      'p-api': [
        { from: ago(5), to: ago(4) },
        { from: ago(4) + gap, to: ago(3) },
      ],
    });
    expect(marksOf(facts({ activity: activity({ work: turns(900) }) }))).toHaveLength(1);
    expect(marksOf(facts({ activity: activity({ work: turns(1100) }) }))).toHaveLength(2);
  });

  it('draws a message from lane to lane, solid to when it was read', () => {
    const [mark] = marksOf(
      facts({
        activity: activity({ messages: [said({ ways: [way('web', { stage: 'consumed', read: ago(9) })] })] }),
      }),
    );
    expect(mark).toMatchObject({ kind: 'message', open: false, x: 300, y: 37, opens: { message: 'm-1' } });
    expect(mark?.points.at(-1)).toEqual([360, 67]);
    expect(sentence(mark as never)).toBe('api to web, Which port?, 11:50, read 11:51');
  });

  it('draws one that waits up to the present, one that expired where it began', () => {
    const end = (w: Way) => marksOf(facts({ activity: activity({ messages: [said({ ways: [w] })] }) }))[0];
    expect(end(way('web'))).toMatchObject({ open: true, how: 'waits to be read' });
    expect(end(way('web'))?.points.at(-1)?.[0]).toBe(900);
    expect(end(way('web', { stage: 'expired' }))).toMatchObject({ open: false, how: 'expired unread' });
    expect(end(way('web', { stage: 'expired' }))?.points.at(-1)?.[0]).toBe(300);
  });

  it('marks a message where only one of the two has a lane, and none where neither has', () => {
    const to = (from: string, name: string) =>
      marksOf(facts({ activity: activity({ messages: [said({ from, ways: [way(name)] })] }) }));
    expect(to('api', 'gone').map((m) => [m.y, m.points])).toEqual([[37, []]]);
    expect(to('gone', 'web').map((m) => [m.y, m.points])).toEqual([[67, []]]);
    expect(to('gone', 'away')).toEqual([]);
  });

  it('draws a decision as one pin across all lanes that got it', () => {
    const notice = (name: string) =>
      said({ id: `d-${name}`, kind: 'decision', ways: [way(name, { read: NOW })] });
    const [pin, ...more] = marksOf(
      facts({
        peers: [api, web, docs],
        activity: activity({ messages: ['api', 'docs', 'web'].map(notice) }),
      }),
    );
    expect(more).toEqual([]);
    expect(pin?.points.map(([, y]) => y)).toEqual([37, 67, 97]);
    expect(pin).toMatchObject({
      kind: 'decision',
      y: 67,
      who: 'api decided, told api, docs, web',
      how: 'read by all 3',
    });
  });

  it('ticks once for a session that was woken once', () => {
    const woken = (id: string, at: number) => said({ id, ways: [way('web', { woken: at, read: NOW })] });
    const wakes = marksOf(
      facts({
        activity: activity({ messages: [woken('m-1', ago(9)), woken('m-2', ago(9)), woken('m-3', ago(8))] }),
      }),
    ).filter((m) => m.kind === 'wake');
    expect(wakes.map((m) => [m.x, m.who])).toEqual([
      [360, 'web was woken by api'],
      [420, 'web was woken by api'],
    ]);
  });

  it('keeps an approval open until it is answered, on the row of its job', () => {
    const job = run({ by: 'api', startedAt: ago(10) });
    const asked = approval({ askedAt: ago(5), expiresAt: NOW + MINUTE });
    const find = (a = asked) =>
      marksOf(facts({ runs: [job], approvals: [a] })).find((m) => m.kind === 'approval');
    expect(find()).toMatchObject({ open: true, x: 600, y: 61, opens: { place: { page: 'needs' } } });
    expect(find()?.points).toEqual([[900, 61]]);
    const answered = find({
      ...asked,
      state: 'applied',
      decision: 'allow',
      answeredBy: 'owner',
      answeredAt: ago(4),
    });
    expect(answered).toMatchObject({ open: false, how: 'allowed by you', points: [[660, 61]] });
    expect(answered?.opens).toEqual({ place: { page: 'run', job: job.job, tab: '' } });
    expect(find({ ...asked, job: 'gone', by: 'web' })?.y).toBe(87);
    expect(find({ ...asked, job: 'gone', by: 'gone' })).toBeUndefined();
  });

  it('puts the prompt of an interactive session into its own lane', () => {
    const prompt = approval({ job: '', session: 'web', by: '', askedAt: ago(10) });
    const [mark] = marksOf(facts({ approvals: [prompt] }));
    expect(mark).toMatchObject({ who: 'web asks', y: 67, opens: { place: { page: 'needs' } } });
    const over = { ...prompt, state: 'applied' as const, decision: 'allow' as const, answeredAt: ago(5) };
    expect(marksOf(facts({ approvals: [over] }))[0]?.opens).toEqual({
      place: { page: 'session', name: 'web' },
    });
  });

  it('says from when on it is known who was at work', () => {
    const unseen = (began: number | null) => draw(facts({ activity: activity({ began }) }), view()).unseen;
    expect([unseen(ago(20)), unseen(ago(5)), unseen(null)]).toEqual([0, 600, 900]);
  });
});

describe('DSK-06 NED-01 questions of sessions', () => {
  const asked = question({ by: 'web', askedAt: ago(10), title: 'Which port?' });

  it('are diamonds that stay open until they are answered', () => {
    const [mark] = marksOf(facts({ questions: [asked] }));
    expect(mark).toMatchObject({
      key: 'question q-1',
      kind: 'question',
      open: true,
      x: 300,
      y: 67,
      points: [[900, 67]],
      who: 'web asks you',
      what: 'Which port?',
      how: 'not answered yet',
      opens: { place: { page: 'needs' } },
    });
    expect(marksOf(facts({ questions: [{ ...asked, blocking: true }] }))[0]?.how).toBe(
      'waits for your answer',
    );
  });

  it.each([
    ['answered', 'answered: 8080'],
    ['cancelled', 'taken back'],
    ['superseded', 'asked anew'],
  ] as const)('that are %s end there', (state, how) => {
    const answer = { option: '', text: '8080', words: '8080', pinned: false, receipt: 'm-7' };
    const over = { ...asked, state, endedAt: ago(5), answer: state === 'answered' ? answer : null };
    const [mark] = marksOf(facts({ questions: [over] }));
    expect(mark).toMatchObject({ open: false, points: [[600, 67]], how });
    expect(mark?.opens).toEqual(
      state === 'answered' ? { message: 'm-7' } : { place: { page: 'session', name: 'web' } },
    );
    expect(marksOf(facts({ questions: [{ ...over, askedAt: ago(30), endedAt: ago(16) }] }))).toEqual([]);
  });

  it('keep their session from being folded away', () => {
    const many = Array.from({ length: 12 }, (_, i) => peer({ id: `p-${i}`, name: `s-${i}`, cwd: '/src' }));
    const { lanes } = draw(facts({ peers: many, questions: [{ ...asked, by: 's-7' }] }), view());
    expect(lanes.map((l) => l.name)).toEqual(['s-7']);
  });
});

describe('DSK-06 the view of a young Bridge', () => {
  it.each([
    // passed since the first, the span, and how long the view then is, in minutes
    [0, 15, 1],
    [0.96, 15, 1],
    [0.98, 15, 2],
    [3, 15, 4],
    [7.5, 15, 8],
    [7.8, 15, 15],
    [14.5, 15, 15],
    [20, 60, 30],
    [70, 480, 120],
  ])('%s of %s minutes: %s in view, from the first on', (passed, span, length) => {
    const { from, to } = present(ago(passed), NOW, span * MINUTE);
    expect((to - from) / MINUTE).toBeCloseTo(length);
    expect(ago(passed) - from).toBeCloseTo(0.03 * length * MINUTE);
    expect(to).toBeGreaterThan(NOW);
  });

  it('has the clock with seconds where minutes would repeat', () => {
    const words = (minutes: number) =>
      draw(facts(), view({ from: ago(minutes), to: NOW })).ticks.map((t) => t.words);
    expect(words(2)).toEqual(expect.arrayContaining(['11:58:15', '11:59:00', '11:59:45']));
    expect(new Set(words(2)).size).toBe(words(2).length);
    expect(words(15)).toContain('11:50');
  });

  it('becomes that of an older one without a jump', () => {
    const [first, span] = [ago(15 * 0.97), 15 * MINUTE];
    expect(present(first, NOW, span)).toEqual({ from: NOW - span, to: NOW });
    const before = present(first, NOW - 5000, span);
    expect(Math.abs(before.from - (NOW - span))).toBeLessThan(5000);
    for (const unknown of [Infinity, -Infinity])
      expect(present(unknown, NOW, span)).toEqual({ from: NOW - span, to: NOW });
  });

  it('begins with what happened first, or where it begins to be known', () => {
    const young = activity({ began: ago(3) });
    const first = (over: Partial<Facts>) => firstOf(facts({ activity: young, ...over }), NOW, 15 * MINUTE);
    expect(first({})).toBe(ago(3));
    expect(first({ activity: { ...young, messages: [said({ at: ago(5) })] } })).toBe(ago(5));
    expect(first({ activity: { ...young, messages: [said({ at: ago(16) })] } })).toBe(ago(3));
    expect(first({ activity: { ...young, work: { p: [{ from: ago(20), to: null }] } } })).toBe(ago(20));
    expect(first({ runs: [run({ startedAt: ago(40), endedAt: ago(14) })] })).toBe(ago(40));
    expect(first({ runs: [run({ startedAt: ago(40), endedAt: ago(16) })] })).toBe(ago(3));
    expect(first({ activity: activity({ began: null }) })).toBe(-Infinity);
  });
});

describe('DSK-06 jobs', () => {
  it('are bars under the session that gave them, with percentage and step', () => {
    const job = run({
      by: 'api',
      startedAt: ago(10),
      step: 'go test ./...',
      progress: { percent: 40, etaMinutes: null, note: '' },
    });
    const picture = draw(facts({ runs: [job] }), view());
    expect(picture.jobs).toMatchObject([
      {
        x: 300,
        y: 52,
        width: 600,
        done: 240,
        words: 'Fix the parser · 40 % · go test ./...',
        anchor: 'start',
      },
    ]);
    expect(picture.lanes.map((l) => l.height)).toEqual([50, 30]);
    expect(picture.marks[0]).toMatchObject({
      kind: 'job',
      open: true,
      who: 'codex, a job of api',
      how: '40 % · go test ./...',
    });
  });

  it.each([
    [14, 1, 65, 'start', 'in its bar'],
    [14, 13, 125, 'start', 'after it'],
    [1, 0, 835, 'end', 'before it'],
  ])('begun %i and ended %i minutes ago, its words are at %i', (begun, ended, wordsX, anchor) => {
    const job = run({ by: 'api', status: 'finished', startedAt: ago(begun), endedAt: ago(ended) });
    const [bar] = draw(facts({ runs: [job] }), view()).jobs;
    expect(bar?.anchor).toBe(anchor);
    expect(bar?.wordsX).toBe(wordsX);
  });

  // The picture is 900 wide for 15 minutes: a minute is 60, the bar begins at 60 and ends at 840.
  it.each([
    [[14], 69, 'start', 'behind one where it begins'],
    [[13.5], 99, 'start', 'behind one on its first word'],
    [[13.9, 13.7], 87, 'start', 'behind both'],
    [[8], 65, 'start', 'before one that leaves it room'],
    [[13, 11, 9, 7, 5, 3], 65, 'start', 'where they always stood: nothing is free'],
  ])('asked %j minutes ago, its words stand at %i: %s', (asked, wordsX, anchor) => {
    const job = run({
      by: 'api',
      status: 'finished',
      title: 'x'.repeat(20),
      startedAt: ago(14),
      endedAt: ago(1),
    });
    const approvals = asked.map((minutes, i) =>
      approval({
        id: `a-${i}`,
        job: job.job,
        state: 'applied',
        askedAt: ago(minutes),
        answeredAt: ago(minutes),
      }),
    );
    const [bar] = draw(facts({ runs: [job], approvals }), view()).jobs;
    expect([bar?.wordsX, bar?.anchor]).toEqual([wordsX, anchor]);
  });

  it('is called within a picture that is too small for its words', () => {
    const job = run({ by: 'api', startedAt: ago(8) });
    const [bar] = draw(facts({ runs: [job] }), view({ width: 120 })).jobs;
    expect(bar).toMatchObject({ wordsX: 2, anchor: 'start' });
  });

  it('share a row where their words leave room, and are six rows at most', () => {
    const jobs = (n: number, minutes: number) =>
      Array.from({ length: n }, (_, i) =>
        run({
          job: `j-${i}`,
          by: 'api',
          status: 'finished',
          startedAt: ago(14 - i * minutes),
          endedAt: ago(13.9 - i * minutes),
        }),
      );
    expect(draw(facts({ runs: jobs(2, 7) }), view()).lanes[0]?.height).toBe(50);
    expect(draw(facts({ runs: jobs(2, 1) }), view()).lanes[0]?.height).toBe(70);
    const many = draw(facts({ runs: jobs(8, 0) }), view());
    expect([many.jobs.length, many.lanes[0]?.more]).toEqual([6, 2]);
  });

  it('that go on come before those that have ended', () => {
    const ended = Array.from({ length: 6 }, (_, i) =>
      run({ job: `e-${i}`, by: 'api', status: 'finished', startedAt: ago(5), endedAt: ago(1) }),
    );
    const works = run({ job: 'works', by: 'api', startedAt: ago(14) });
    expect(draw(facts({ runs: [...ended, works] }), view()).jobs[0]?.job).toBe('works');
  });

  it('of a job stand with it, of a session that left under its name', () => {
    const first = run({ job: 'j-1', by: 'api', startedAt: ago(9) });
    const second = run({ job: 'j-2', by: 'j-1', startedAt: ago(8) });
    const orphan = run({ job: 'j-3', by: 'gone', startedAt: ago(7) });
    const picture = draw(facts({ runs: [first, second, orphan] }), view());
    expect(picture.lanes.map((l) => [l.name, l.state, l.height])).toEqual([
      ['api', 'idle', 70],
      ['web', 'idle', 30],
      ['gone', 'away', 50],
    ]);
  });

  it('out of the view are left out', () => {
    const old = run({ by: 'api', status: 'finished', startedAt: ago(60), endedAt: ago(16) });
    const queued = run({ job: 'q', by: 'api', status: 'queued', startedAt: null });
    expect(draw(facts({ runs: [old, queued] }), view()).jobs).toEqual([]);
  });
});

describe('DSK-06 pointing', () => {
  const messages = [
    said({ ways: [way('web', { read: ago(10) + 1000 })] }),
    said({ id: 'm-2', at: ago(5), from: 'web', agent: 'codex', ways: [way('api', { read: ago(5) + 1000 })] }),
  ];
  const marks = marksOf(
    facts({ activity: activity({ messages, work: { 'p-api': [{ from: ago(14), to: ago(1) }] } }) }),
  );

  it.each([
    [300, 37, 'message m-1 web'],
    [301, 67, 'message m-1 web'],
    [500, 38, `work p-api ${ago(14)}`],
    [500, 60, undefined],
    [601, 60, 'message m-2 api'],
    [850, 37, undefined],
  ])('at %i, %i is %s', (x, y, key) => {
    expect(markAt(marks, x, y)?.key).toBe(key);
  });

  it('goes by keys through time and lanes', () => {
    const go = (...keys: string[]) =>
      keys.reduce<ReturnType<typeof step>>((at, key) => step(marks, at, key), undefined)?.key;
    const [work, first, second] = marks.map((m) => m.key);
    expect(go('ArrowLeft')).toBe(second);
    expect(go('Home')).toBe(work);
    expect(go('Home', 'ArrowRight')).toBe(first);
    expect(go('End', 'ArrowRight')).toBe(second);
    expect(go('Home', 'ArrowLeft')).toBe(work);
    expect(go('Home', 'ArrowDown')).toBe(second);
    expect(go('End', 'ArrowUp')).toBe(first);
    expect(go('Home', 'ArrowUp')).toBe(work);
    expect(go('x')).toBeUndefined();
  });
});

it('DSK-06 says how far a message came', () => {
  expect(howFar([], NOW)).toBe('nobody had it');
  expect(howFar([way('web', { stage: 'handed' })], NOW)).toBe('handed over, not read yet');
  expect(howFar([way('web', { stage: 'answered', read: ago(1) })], NOW)).toBe('answered, read 11:59');
  expect(howFar([way('web', { read: NOW }), way('docs')], NOW)).toBe('read by 1 of 2');
});
