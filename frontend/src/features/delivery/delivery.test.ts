import { describe, expect, it } from 'vitest';
import type { Delivery, Stage, Via } from '../../lib/api';
import { delivery, message } from '../../lib/sample';
import { clock } from '../../lib/time';
import { markOf, STEPS, summarize, words } from './delivery';

const now = 60_000;

describe('words of one delivery', () => {
  const at = (seconds: number) => clock(1000 + seconds * 1000, now);
  it.each<[Stage, string]>([
    ['accepted', 'accepted, being stored'],
    ['durable', 'waiting for its next turn'],
    ['woken', `woken ${at(2)}, not picked up yet`],
    ['handed', `handed over ${at(3)}`],
    ['consumed', `read ${at(4)}`],
    ['answered', `answered ${at(5)}`],
    ['expired', 'expired unread'],
    ['at-hub', 'at the team’s hub, not on the other PC yet'],
    ['arrived', 'on the other PC'],
    ['refused', 'refused by the other PC'],
  ])('%s', (stage, want) => {
    expect(words(delivery(stage), now)).toBe(want);
  });

  it('prefers what the broker says', () => {
    expect(words(delivery('durable', { note: 'unconfirmed: not sent again' }), now)).toBe(
      'unconfirmed: not sent again',
    );
  });
});

describe('CHT-04 CHT-06 words of what went to codex’s own queue', () => {
  /** Handed over this way, and the server's note of any handed message. */
  const queued = (via: Via, evidence: string, stage: Stage = 'handed') => {
    const d = delivery(stage, { note: 'handed over, waiting for a sign of activity' });
    return { ...d, stages: d.stages.map((s) => (s.stage === 'handed' ? { ...s, via, evidence } : s)) };
  };
  it.each<[Via, string, string, string, string]>([
    ['queue', 'codex queue took it', 'in codex’s queue', 'done', 'plain'],
    [
      'queue-unclear',
      'codex queue: unconfirmed, codex did not answer in 10s',
      'codex queue: unconfirmed, codex did not answer in 10s; not sent again',
      'unsure',
      'warn',
    ],
    ['hook', 'hook Stop', 'handed over, waiting for a sign of activity', 'done', 'plain'],
    // The evidence is for people: no word in it decides anything.
    ['hook', 'codex queue took it', 'handed over, waiting for a sign of activity', 'done', 'plain'],
    ['', 'codex queue: unconfirmed, no', 'handed over, waiting for a sign of activity', 'done', 'plain'],
  ])('%s: %s', (via, evidence, want, mark, tone) => {
    const d = queued(via, evidence);
    expect([words(d, now), markOf(d, 'handed')]).toEqual([want, mark]);
    expect(summarize(message({ deliveries: [d] }), now)).toMatchObject({ words: want, tone });
  });

  it('once it was read, nothing is unsure any more', () => {
    const read = queued('queue-unclear', 'codex queue: unconfirmed, no answer', 'consumed');
    expect(markOf(read, 'handed')).toBe('done');
    expect(words({ ...read, note: 'read 14:02' }, now)).toBe('read 14:02');
  });
});

describe('words of a wake', () => {
  const woken = (via: Via, note: string) => {
    const d = delivery('woken', { note });
    return words({ ...d, stages: d.stages.map((s) => (s.stage === 'woken' ? { ...s, via } : s)) }, now);
  };
  const at = clock(3000, now);
  it.each<[Via, string]>([
    ['wake-hook', `woken ${at} by its wake hook, not picked up yet`],
    ['queue', `woken ${at} through codex’s queue, not picked up yet`],
    ['plugin', `woken ${at}, not picked up yet`],
  ])('%s', (via, want) => {
    expect(woken(via, 'woken 00:00, waiting for its turn to begin')).toBe(want);
  });
  it('gives way to what came after', () => {
    expect(woken('wake-hook', 'waiting for the session to come back')).toBe(
      'waiting for the session to come back',
    );
  });
});

describe('marks', () => {
  const marks = (d: Delivery) => STEPS.map((step) => markOf(d, step)).join(' ');
  const without = (d: Delivery, step: string, possible: boolean): Delivery => ({
    ...d,
    stages: d.stages.map((s) => (s.stage === step ? { ...s, at: null, possible } : s)),
  });

  it('fills what happened and leaves the rest hollow', () => {
    expect(marks(delivery('woken'))).toBe('done done done pending pending pending');
  });
  it('crosses what this recipient can never show', () => {
    expect(marks(without(delivery('durable'), 'woken', false))).toBe(
      'done done never pending pending pending',
    );
  });
  it('neither crosses nor waits for a step that a later one overtook', () => {
    for (const possible of [true, false]) {
      const got = marks(without(delivery('handed'), 'woken', possible));
      expect(got).toBe('done done skipped done pending pending');
    }
  });
  it.each<Stage>(['expired', 'refused'])('crosses what one that is %s will not reach any more', (stage) => {
    expect(marks(delivery(stage))).toBe('done done never never never never');
  });
  it('RMT-21 waits for what the other PC has not told yet', () => {
    expect(marks(delivery('arrived'))).toBe('done done pending pending pending pending');
    expect(marks(delivery('at-hub'))).toBe('done done pending pending pending pending');
  });
});

describe('summary over recipients', () => {
  const of = (...stages: Stage[]) =>
    summarize(message({ deliveries: stages.map((s, i) => delivery(s, { id: `p-${i}` })) }), now);

  it.each<[Stage[], string, string]>([
    [[], 'no recipient', 'plain'],
    [['consumed', 'durable', 'answered'], 'read by 2 of 3', 'wait'],
    [['consumed', 'answered'], 'read by all 2', 'good'],
    [['answered', 'answered'], 'answered by all 2', 'good'],
    [['handed', 'handed'], 'handed over to all 2', 'plain'],
    [['handed', 'durable'], 'read by 0 of 2', 'wait'],
    [['expired', 'consumed'], 'expired unread for 1 of 2', 'bad'],
    [['refused', 'consumed'], 'refused for 1 of 2', 'bad'],
    [['refused'], 'refused by the other PC', 'bad'],
    [['at-hub'], 'at the team’s hub, not on the other PC yet', 'wait'],
    [['arrived'], 'on the other PC', 'wait'],
  ])('%j', (stages, want, tone) => {
    const { words: got, tone: gotTone } = of(...stages);
    expect([got, gotTone]).toEqual([want, stages.length === 0 ? 'plain' : tone]);
  });

  it('marks a step that only some have done', () => {
    expect(of('consumed', 'handed').marks.map((m) => m.mark)).toEqual([
      'done',
      'done',
      'done',
      'done',
      'part',
      'pending',
    ]);
  });
});
