// What the page says about the home's health, without markup.

import { scaleLinear } from 'd3-scale';
import type { DoctorReport, Proof, SizePoint, StorageSummary, Work, WorkAction } from '../../lib/api';
import { count } from '../../lib/text';
import { ago } from '../../lib/time';

/** A report in numbers, as the state has them. */
export function summarize(report: DoctorReport): StorageSummary {
  const of = (severity: string) => report.findings.filter((f) => f.severity === severity).length;
  return {
    ok: report.ok,
    errors: of('error'),
    warnings: of('warning'),
    lastBackup: report.backups.length === 0 ? null : Math.max(...report.backups.map((b) => b.createdAt)),
  };
}

/** Healthy or not, in one sentence. */
export function healthSentence({ ok, errors, warnings }: StorageSummary): string {
  if (ok === null) return 'Not checked yet.';
  const warned = warnings === 0 ? '' : count(warnings, 'warning');
  if (!ok) return `Not healthy: ${count(errors, 'error')}${warned === '' ? '' : ` and ${warned}`}.`;
  return warned === '' ? 'Healthy: nothing is wrong.' : `Sound, with ${warned}.`;
}

/** Storage and backup in one line, '' before the first check. */
export function storageLine(summary: StorageSummary, now: number): string {
  if (summary.ok === null) return '';
  const { errors, warnings, lastBackup } = summary;
  const health =
    errors > 0
      ? `storage has ${count(errors, 'error')}`
      : warnings > 0
        ? `storage sound, ${count(warnings, 'warning')}`
        : 'storage healthy';
  return `${health}, ${lastBackup === null ? 'no backup yet' : `backup ${ago(lastBackup, now)}`}`;
}

/** What takes the room, the largest first; what SQLite keeps beside a database counts to it. */
export function bySize(report: DoctorReport): { path: string; bytes: number }[] {
  const sums = new Map<string, number>();
  for (const { path, bytes: size } of report.sizes) {
    const name = path.replace(/(\.db)-(wal|shm|journal)$/, '$1');
    sums.set(name, (sums.get(name) ?? 0) + size);
  }
  return [...sums]
    .map(([path, size]) => ({ path, bytes: size }))
    .filter((s) => s.bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
}

/** How many of these, the largest first, take room worth a line: at least a hundredth of all. */
export function worthALine(sizes: { bytes: number }[]): number {
  const all = sizes.reduce((sum, s) => sum + s.bytes, 0);
  return Math.min(8, sizes.filter((s) => s.bytes * 100 >= all).length);
}

/** What a published set holds: everything, or only messages and job routes. */
export function backupSort(path: string): string {
  return path.startsWith('message-backups/') ? 'messages only' : 'full';
}

/** What the owner asks for, as a button says it. */
export const WORK_TITLES: Record<WorkAction, string> = {
  backup: 'Back up now',
  drill: 'Prove a restore',
  check: 'Check now',
  archive: 'Archive old messages',
  fix: 'Put abandoned files away',
  restore: 'Restore a snapshot',
  merge: 'Merge messages back',
};

const RUNNING: Record<WorkAction, string> = {
  backup: 'Backing up',
  drill: 'Proving a restore',
  check: 'Checking',
  archive: 'Archiving',
  fix: 'Putting abandoned files away',
  restore: 'Restoring',
  merge: 'Merging',
};

const ENDED: Record<WorkAction, string> = {
  backup: 'Backup',
  drill: 'Restore drill',
  check: 'Check',
  archive: 'Archive',
  fix: 'Fix',
  restore: 'Restore',
  merge: 'Merge',
};

/** How far a work is, from 0 to 1; null where that is not known. */
export function progress({ done, all }: Work): number | null {
  return all > 0 && done < all ? done / all : null;
}

/** What a running work is doing: "Backing up: copying bridge.db, 42 %". */
export function runningWords(work: Work): string {
  const part = progress(work);
  const step = work.step === '' ? '' : `: ${work.step}`;
  return `${RUNNING[work.action]}${step}${part === null ? '' : `, ${Math.floor(part * 100)} %`}`;
}

/** "Backup done", "Restore drill failed". */
export function endedWords(work: Work): string {
  return `${ENDED[work.action]} ${work.state}`;
}

/** A hint of the server's as a sentence. */
export function sentence(hint: string): string {
  const text = hint.charAt(0).toUpperCase() + hint.slice(1);
  return text === '' || text.endsWith('.') ? text : `${text}.`;
}

/** How a published set's last drill went; undefined where it had none. */
export function proofOf(path: string, drills: Proof[]): Proof | undefined {
  return drills.find((d) => d.snapshot === path.split('/').at(-1));
}

/** The points of a chart of that size in pixels, from its lower left at 0 bytes; y grows downwards, as in SVG. */
export function plot(points: SizePoint[], width: number, height: number): { x: number; y: number }[] {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return [];
  // One moment alone stands at the right edge: it is the present.
  const from = first.at === last.at ? first.at - 1 : first.at;
  const x = scaleLinear([from, last.at], [0, width]);
  const y = scaleLinear([0, Math.max(1, ...points.map((p) => p.total))], [height, 0]);
  return points.map((p) => ({ x: x(p.at), y: y(p.total) }));
}

/** A text around the first place that holds the query, literally. */
export function around(text: string, query: string, room: number) {
  const at = text.indexOf(query);
  if (query === '' || at < 0) return { before: text.slice(0, room * 2), match: '', after: '' };
  const end = at + query.length;
  const start = Math.max(0, at - room);
  return {
    before: (start > 0 ? '…' : '') + text.slice(start, at),
    match: text.slice(at, end),
    after: text.slice(end, end + room) + (end + room < text.length ? '…' : ''),
  };
}
