import { describe, expect, it } from 'vitest';
import { LogReader, readLine, turnOf } from './log';

const ESC = String.fromCharCode(27);

describe('DSK-06 a log', () => {
  it('tells steps, ends, questions and words apart', () => {
    expect(readLine('$ shell go test ./...')).toEqual({
      kind: 'step',
      tool: 'shell',
      text: 'go test ./...',
      bad: false,
    });
    expect(readLine('$ web_search')).toMatchObject({ tool: 'web_search', text: '' });
    expect(readLine('? shell rm -rf x')).toMatchObject({ kind: 'asked', tool: 'shell', text: 'rm -rf x' });
    expect(readLine('> go on')).toMatchObject({ kind: 'told', text: 'go on' });
    expect(readLine('! stopped: budget')).toMatchObject({ kind: 'trouble', bad: true });
    expect(readLine('+ .env')).toMatchObject({ kind: 'copied', text: '.env' });
    expect(readLine('@ turn 2, 2026-11-30T14:35:00Z')).toMatchObject({ kind: 'turn' });
    expect(readLine('@ turn the page')).toMatchObject({ kind: 'said', text: '@ turn the page' });
    expect(readLine('$5 is what it costs')).toMatchObject({ kind: 'said', text: '$5 is what it costs' });
  });

  it.each([
    ['= done', false],
    ['= done (exit 0)', false],
    ['= done (exit 1)', true],
    ['= refused', true],
  ])('%j is wrong: %j', (line, bad) => expect(readLine(line).bad).toBe(bad));

  it('takes colours and moves of a terminal away', () => {
    expect(readLine(`${ESC}[1;31mred${ESC}[0m ${ESC}]0;title\u0007text\r`).text).toBe('red text');
  });

  it('counts a line once it has its end, whatever pieces it came in', () => {
    const whole = new LogReader();
    whole.push('I begin\n$ shell go vet\nsecond line\n= done\nI end\n');
    const pieces = new LogReader();
    for (const char of 'I begin\n$ shell go vet\nsecond line\n= done\nI end\n') pieces.push(char);
    expect(pieces.pieces).toEqual(whole.pieces);
    expect(whole.pieces.map((p) => [p.kind, p.text])).toEqual([
      ['said', 'I begin'],
      ['step', 'go vet\nsecond line'],
      ['end', 'done'],
      ['said', 'I end'],
    ]);
    pieces.push('half');
    expect(pieces.pieces).toHaveLength(4);
  });

  it('keeps its pieces small and their names for good', () => {
    const log = new LogReader();
    log.push('x\n'.repeat(450));
    const ids = log.pieces.map((p) => p.id);
    expect(log.pieces.map((p) => p.text.split('\n').length)).toEqual([200, 200, 50]);
    log.push('y\n');
    expect(log.pieces.map((p) => p.id)).toEqual(ids);
  });
});

describe('PGE-05 the turns of a log', () => {
  it('have a number, authors and a time, or are none', () => {
    const at = Date.UTC(2026, 10, 30, 14, 35);
    expect(turnOf('turn 2, 2026-11-30T14:35:00Z')).toEqual({ turn: 2, by: '', at });
    expect(turnOf('turn 3 from you, api, 2026-11-30T14:35:00Z')).toEqual({ turn: 3, by: 'you, api', at });
    for (const text of [
      '',
      'turn',
      'turn 2',
      'turn x, 2026-11-30T14:35:00Z',
      'turn 2, soon',
      'turn 2 from , soon',
    ])
      expect([text, turnOf(text)]).toEqual([text, null]);
  });
});
