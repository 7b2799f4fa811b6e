// A job's log as lines with a meaning. What the runner writes begins with a mark:
// "$ " a step, "= " how it ended, "? " a question, "> " words to the agent, "! " trouble,
// "+ " a file that was copied in, "@ " a turn that continues the job. All else is what the agent said or a command printed.

export type LineKind = 'step' | 'end' | 'asked' | 'told' | 'trouble' | 'copied' | 'turn' | 'said';

export interface Line {
  kind: LineKind;
  text: string;
  /** A step's or question's tool, '' for other lines. */
  tool: string;
  /** An end that is no success. */
  bad: boolean;
}

const MARKS: Record<string, LineKind> = {
  '$ ': 'step',
  '= ': 'end',
  '? ': 'asked',
  '> ': 'told',
  '! ': 'trouble',
  '+ ': 'copied',
  '@ ': 'turn',
};

/** Colours and moves of a terminal, which mean nothing here. */
const TERMINAL =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g;

export function readLine(raw: string): Line {
  const whole = raw.replace(TERMINAL, '');
  const kind = MARKS[whole.slice(0, 2)] ?? 'said';
  if (kind === 'said') return { kind, text: whole, tool: '', bad: false };
  const text = whole.slice(2);
  if (kind === 'turn' && turnOf(text) === null) return { kind: 'said', text: whole, tool: '', bad: false };
  if (kind === 'end') return { kind, text, tool: '', bad: isBad(text) };
  if (kind !== 'step' && kind !== 'asked') return { kind, text, tool: '', bad: kind === 'trouble' };
  const space = text.indexOf(' ');
  return space < 0
    ? { kind, text: '', tool: text, bad: false }
    : { kind, text: text.slice(space + 1), tool: text.slice(0, space), bad: false };
}

/** A turn that continues a job: its number, the names of its message's authors or '', and its time. */
export interface TurnLine {
  turn: number;
  by: string;
  at: number;
}

/** Returns the turn of a line, or null for a line that is none. */
export function turnOf(text: string): TurnLine | null {
  const [, turn, by = '', when = ''] = /^turn (\d{1,9})(?: from (.+))?, (\S+)$/.exec(text) ?? [];
  const at = Date.parse(when);
  return turn === undefined || Number.isNaN(at) ? null : { turn: Number(turn), by, at };
}

/** "done" and "done (exit 0)" are good ends. */
const isBad = (end: string) => !/^done(?: \(exit 0\))?$/.test(end);

/** Lines that belong together: what was said in one piece, or a step with what it is about. */
export interface Piece {
  id: number;
  kind: LineKind;
  tool: string;
  bad: boolean;
  text: string;
}

/** What may have more lines than its first, which follow it without a mark. */
const LONG: readonly LineKind[] = ['said', 'step', 'asked', 'told'];

/** How many lines a piece may have, so that a long output is drawn in parts. */
const PIECE = 200;

/** Takes a log in as it grows. A line counts once it has its end. */
export class LogReader {
  pieces: Piece[] = [];
  #rest = '';
  #lines = 0;
  #next = 0;

  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const pieces = [...this.pieces];
    for (const line of lines) this.#add(pieces, readLine(line));
    this.pieces = pieces;
  }

  #add(pieces: Piece[], line: Line): void {
    const last = pieces.at(-1);
    const goesOn = last !== undefined && line.kind === 'said' && LONG.includes(last.kind);
    if (goesOn && this.#lines < PIECE) {
      this.#lines++;
      pieces[pieces.length - 1] = { ...last, text: `${last.text}\n${line.text}` };
      return;
    }
    this.#lines = 1;
    pieces.push({ id: this.#next++, ...line });
  }
}
