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

describe('CHT-04 CHT-06 words of what went to codex’s own queue', () => {
  /** Handed over with this evidence, and the server's note of any handed message. */
  const queued = (evidence: string, stage: Stage = 'handed') => {
    const d = delivery(stage, { note: 'handed over, waiting for a sign of activity' });
    return { ...d, stages: d.stages.map((s) => (s.stage === 'handed' ? { ...s, evidence } : s)) };
  };
  it.each([
    ['codex queue took it', 'in codex’s queue', 'done', 'plain'],
    [
      'codex queue: unconfirmed, codex did not answer in 10s',
      'unconfirmed: codex did not answer in 10s; not sent again',
      'unsure',
      'warn',
    ],
    [
      'codex queue: launched, outcome not known',
      'unconfirmed: launched, outcome not known; not sent again',
      'unsure',
      'warn',
    ],
    ['hook Stop printed it', 'handed over, waiting for a sign of activity', 'done', 'plain'],
  ])('%s', (evidence, want, mark, tone) => {
    const d = queued(evidence);
    expect([words(d, now), markOf(d, 'handed')]).toEqual([want, mark]);
    expect(summarize(message({ deliveries: [d] }), now)).toMatchObject({ words: want, tone });
  });

  it('once it was read, nothing is unsure any more', () => {
    const read = queued('codex queue: unconfirmed, no answer', 'consumed');
    expect(markOf(read, 'handed')).toBe('done');
    expect(words({ ...read, note: 'read 14:02' }, now)).toBe('read 14:02');
  });
});

describe('words of a wake', () => {
  const woken = (evidence: string, note: string) => {
    const d = delivery('woken', { note });
    return words({ ...d, stages: d.stages.map((s) => (s.stage === 'woken' ? { ...s, evidence } : s)) }, now);
  };
  const at = clock(3000, now);
  it.each([
    ['its wake hook was given the text', `woken ${at} by its wake hook, not picked up yet`],
    ['codex’s queue accepted a wake', `woken ${at} through codex’s queue, not picked up yet`],
    ['asked', `woken ${at}, not picked up yet`],
  ])('%s', (evidence, want) => {
    expect(woken(evidence, 'woken 00:00, waiting for its turn to begin')).toBe(want);
  });
  it('gives way to what came after', () => {
    expect(woken('its wake hook was given the text', 'waiting for the session to come back')).toBe(
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
