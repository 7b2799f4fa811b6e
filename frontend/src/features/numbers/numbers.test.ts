import { expect, it } from 'vitest';
import { run } from '../../lib/sample';
import { hoursWords, limitsUsed, newestSize, spark, spentToday, withLastHour } from './numbers';

const NOON = new Date(2026, 10, 23, 12).getTime();
const HOUR = 3_600_000;

it('DSK-06 a spark line reaches from zero to the busiest hour', () => {
  expect(spark([0, 4, 2], 100, 20)).toBe('M0.0 20.0L50.0 0.0L100.0 10.0');
  expect(spark([0, 0], 100, 20)).toBe('M0.0 20.0L100.0 20.0');
  expect(spark([], 100, 20)).toBe('');
});

it('DSK-06 the hours in words', () => {
  const hours = [
    { from: 0, messages: 3, wakes: 0 },
    { from: HOUR, messages: 7, wakes: 1 },
    { from: 2 * HOUR, messages: 2, wakes: 0 },
  ];
  expect(hoursWords(hours, 'messages')).toBe('12 in 24 hours, at most 7 in one, 2 in the last');
  expect(hoursWords(hours, 'wakes')).toBe('1 in 24 hours, at most 1 in one, 0 in the last');
  expect(hoursWords([], 'wakes')).toBe('0 in 24 hours, at most 0 in one, 0 in the last');
});

it('DSK-06 what jobs of today have spent, by kind', () => {
  const spent = spentToday(
    [
      run({ agent: 'codex', startedAt: NOON - HOUR, tokens: 100, costUsd: 0.5 }),
      run({ agent: 'codex', startedAt: NOON - 12 * HOUR, tokens: 20, costUsd: 0.25 }),
      run({ agent: 'codex', startedAt: NOON - 12 * HOUR - 1, tokens: 5000, costUsd: 9 }),
      run({ agent: 'claude', startedAt: NOON, tokens: 7 }),
      run({ agent: 'opencode', startedAt: null }),
    ],
    NOON,
  );
  expect(spent).toEqual([
    { agent: 'claude', jobs: 1, tokens: 7, costUsd: 0 },
    { agent: 'codex', jobs: 2, tokens: 120, costUsd: 0.75 },
  ]);
});

it('DSK-06 JOB-21 of each agent the limit that is nearest, with when it is reset', () => {
  const limit = (name: string, usedPercent: number, resetsAt: number | null) => ({
    name,
    usedPercent,
    resetsAt,
  });
  const told = (agent: string, ...limits: ReturnType<typeof limit>[]) => ({
    agent,
    asOf: NOON - HOUR,
    plan: '',
    limits,
    note: '',
  });
  const used = limitsUsed(
    [
      told('codex', limit('5 h', 12.4, NOON + HOUR), limit('7 d', 91, null)),
      told('claude', limit('five_hour', 99, NOON - 1), limit('seven_day', 42, NOON + 2 * HOUR)),
      told('opencode'),
      told('antigravity', limit('all', 99, NOON)),
    ],
    NOON,
  );
  expect(used).toEqual([
    {
      agent: 'claude',
      words: 'seven day 42 %, resets 14:00',
      near: false,
      title: 'seven day 42 %, resets 14:00 (as of 11:00)',
    },
    {
      agent: 'codex',
      words: '7 d 91 %',
      near: true,
      title: '7 d 91 %; 5 h 12 %, resets 13:00 (as of 11:00)',
    },
  ]);
});

it('DSK-06 the size that was measured last, with what takes most of it', () => {
  const parts = { 'bridge.db': 3_000_000, backups: 9_000_000, 'a.json': 12, logs: 1000 };
  const points = [
    { at: NOON, total: 12_001_012, parts },
    { at: NOON - HOUR, total: 5, parts: {} },
  ];
  expect(newestSize(points, NOON)).toEqual({
    words: '12 MB',
    title: 'backups 9.0 MB, bridge.db 3.0 MB, logs 1.0 kB, measured 12:00',
  });
  expect(newestSize([], NOON)).toBeNull();
});

it('DSK-06 the last hour has the count that the rest of the page shows', () => {
  const hours = [
    { from: 1, messages: 4, wakes: 1 },
    { from: 2, messages: 0, wakes: 3 },
  ];
  expect(withLastHour(hours, 2)).toEqual([hours[0], { from: 2, messages: 2, wakes: 3 }]);
  expect(withLastHour([], 2)).toEqual([]);
});
