// A unified patch as lines with their numbers on both sides.

import type { LineComment } from '../../lib/api';
import { count } from '../../lib/text';

export interface DiffLine {
  kind: 'hunk' | 'same' | 'added' | 'removed' | 'note';
  text: string;
  old: number | null;
  new: number | null;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** What stands before the first hunk are names and modes, which the page shows itself. */
export function readPatch(patch: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let old = 0;
  let now = 0;
  for (const text of patch.replace(/\n$/, '').split('\n')) {
    const hunk = HUNK.exec(text);
    if (hunk !== null) {
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      lines.push({ kind: 'hunk', text, old: null, new: null });
    } else if (lines.length === 0) continue;
    else if (text.startsWith('+')) lines.push({ kind: 'added', text: text.slice(1), old: null, new: now++ });
    else if (text.startsWith('-'))
      lines.push({ kind: 'removed', text: text.slice(1), old: old++, new: null });
    else if (text.startsWith('\\')) lines.push({ kind: 'note', text: text.slice(2), old: null, new: null });
    else lines.push({ kind: 'same', text: text.slice(1), old: old++, new: now++ });
  }
  return lines;
}

/** Two lines beside each other, by their place among all; null where one side has none. */
export interface SplitRow {
  left: number | null;
  right: number | null;
}

/** The old text beside the new one: what went beside what came in its place, in their order. */
export function splitRows(lines: DiffLine[]): SplitRow[] {
  const rows: SplitRow[] = [];
  let went: number[] = [];
  let came: number[] = [];
  const end = () => {
    for (let i = 0; i < Math.max(went.length, came.length); i++)
      rows.push({ left: went[i] ?? null, right: came[i] ?? null });
    [went, came] = [[], []];
  };
  for (const [i, { kind }] of lines.entries()) {
    if (kind === 'removed') {
      if (came.length > 0) end();
      went.push(i);
    } else if (kind === 'added') came.push(i);
    else {
      end();
      rows.push({ left: i, right: i });
    }
  }
  end();
  return rows;
}

/** Where a comment on that line belongs; null for a line that cannot have one. */
export function commentAt(line: DiffLine): Pick<LineComment, 'line' | 'side'> | null {
  if (line.new !== null) return { line: line.new, side: 'new' };
  if (line.old !== null) return { line: line.old, side: 'old' };
  return null;
}

/** The same place, whatever is said there. */
export const samePlace = (a: LineComment, b: Pick<LineComment, 'path' | 'line' | 'side'>) =>
  a.path === b.path && a.line === b.line && a.side === b.side;

/** "3 files, 10 lines added, 2 removed". */
export function diffWords(files: { added: number; removed: number }[]): string {
  const sum = (pick: (f: { added: number; removed: number }) => number) =>
    files.reduce((total, file) => total + pick(file), 0);
  return `${count(files.length, 'file')}, ${count(
    sum((f) => f.added),
    'line',
  )} added, ${sum((f) => f.removed)} removed`;
}
