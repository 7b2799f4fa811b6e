import { describe, expect, it } from 'vitest';
import type { Delivery, Stage } from '../../lib/api';
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
  ])('%s', (stage, want) => {
    expect(words(delivery(stage), now)).toBe(want);
  });

  it('prefers what the broker says', () => {
    expect(words(delivery('durable', { note: 'unconfirmed: not sent again' }), now)).toBe(
      'unconfirmed: not sent again',
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
  it('crosses what an expired message will not reach any more', () => {
    expect(marks(delivery('expired'))).toBe('done done never never never never');
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
