import { describe, expect, it } from 'vitest';
import { readFilters, timeOf } from './filters';

const now = new Date(2026, 10, 28, 15, 0).getTime();
const at = (day: number, hour = 0, minute = 0) => new Date(2026, 10, day, hour, minute).getTime();

describe('PGE-06 filters of the search', () => {
  it.each([
    ['13:30', at(28, 13, 30)],
    ['15:01', at(27, 15, 1)],
    ['2026-11-27', at(27)],
    ['2026-11-27T09:05', at(27, 9, 5)],
    ['24:00', null],
    ['13:60', null],
    ['2026-11-31', null],
    ['2026-13-01', null],
    ['noon', null],
    ['', null],
  ])('the time “%s”', (text, want) => {
    expect(timeOf(text, now)).toBe(want);
  });

  it.each([
    ['zebra', { words: 'zebra', from: '', after: null, before: null }],
    ['from:api-9 zebra', { words: 'zebra', from: 'api-9', after: null, before: null }],
    ['a FROM:x after:13:30 b', { words: 'a   b', from: 'x', after: at(28, 13, 30), before: null }],
    ['from:api before:2026-11-27', { words: '', from: 'api', after: null, before: at(27) }],
    ['before:13:30', { words: '', from: '', after: 0, before: at(28, 13, 30) }],
    ['"from:api said"', { words: '"from:api said"', from: '', after: null, before: null }],
    ['wherefrom:x', { words: 'wherefrom:x', from: '', after: null, before: null }],
  ])('“%s”', (typed, want) => {
    expect(readFilters(typed, now)).toEqual({ ...want, problem: '' });
  });

  it.each([
    ['from:', 'Type a name after “from:”, as in from:api.'],
    ['x after:soon', '“after:soon” is no time: type after:13:30 or after:2026-11-27.'],
    ['before:2026-11-31', '“before:2026-11-31” is no time: type before:13:30 or before:2026-11-27.'],
    [
      'after:13:30 before:2026-11-27',
      'Nothing is after and before these times: “after:” has to be earlier than “before:”.',
    ],
  ])('says what is wrong with “%s”', (typed, problem) => {
    expect(readFilters(typed, now).problem).toBe(problem);
  });
});
