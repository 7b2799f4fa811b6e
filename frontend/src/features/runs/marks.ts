// Which words of a changed line are not in the line that it stands for.

import type { Token } from '../../lib/highlight';
import { wordDiff } from '../../lib/worddiff';
import { splitRows, type DiffLine } from './diff';

/** A part of a line, by its characters. */
export interface Span {
  from: number;
  to: number;
}

/** Nobody finds a word in a longer line. */
const MOST_CHARS = 500;
/** So many pairs of lines are compared in a file. */
const MOST_PAIRS = 2000;
/** Two lines that share less than this part have nothing to do with each other. */
const LEAST_SHARED = 0.4;

const size = (text: string) => text.replace(/\s/g, '').length;

/** The changed words of each line, in the lines' order. Only lines that stand for each other have any. */
export function wordMarks(lines: DiffLine[]): Span[][] {
  const marks: Span[][] = lines.map(() => []);
  let pairs = 0;
  for (const { left, right } of splitRows(lines)) {
    if (left === null || right === null || left === right) continue;
    if (++pairs > MOST_PAIRS) break;
    const [before, after] = [lines[left]?.text ?? '', lines[right]?.text ?? ''];
    if (Math.max(before.length, after.length) > MOST_CHARS) continue;
    const pieces = wordDiff(before, after);
    const shared = pieces.reduce((sum, { kind, text }) => sum + (kind === 'same' ? size(text) : 0), 0);
    if (shared < LEAST_SHARED * Math.max(size(before), size(after))) continue;
    let [old, now] = [0, 0];
    for (const { kind, text } of pieces) {
      if (kind === 'removed') marks[left]?.push({ from: old, to: old + text.length });
      if (kind === 'added') marks[right]?.push({ from: now, to: now + text.length });
      if (kind !== 'added') old += text.length;
      if (kind !== 'removed') now += text.length;
    }
  }
  return marks;
}

/** A part of a line that is drawn in one way. */
export interface Part {
  kind: string;
  text: string;
  changed: boolean;
}

/** The line in its colours, cut where a changed word begins or ends. */
export function lineParts(text: string, tokens: Token[] | null, marks: Span[]): Part[] {
  const whole = tokens !== null && tokens.length > 0 ? tokens : [{ kind: '', text }];
  const parts: Part[] = [];
  let at = 0;
  for (const token of whole) {
    const end = at + token.text.length;
    const cuts = marks.flatMap(({ from, to }) => [from, to]).filter((cut) => cut > at && cut < end);
    for (const to of [...cuts, end]) {
      const changed = marks.some((mark) => mark.from <= at && to <= mark.to);
      if (to > at) parts.push({ kind: token.kind, text: text.slice(at, to), changed });
      at = to;
    }
  }
  return parts;
}

/** The first line of each change: lines that went or came, with none between them. */
export function changeStarts(lines: DiffLine[]): Set<number> {
  const isChange = (line: DiffLine | undefined) => line?.kind === 'added' || line?.kind === 'removed';
  return new Set([...lines.keys()].filter((i) => isChange(lines[i]) && !isChange(lines[i - 1])));
}
