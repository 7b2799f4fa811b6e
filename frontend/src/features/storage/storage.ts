// What the page says about the home's health, without markup.

import type { DoctorReport, StorageSummary } from '../../lib/api';
import { count } from '../../lib/text';
import { ago } from '../../lib/time';

const RESTORE =
  'Restore a snapshot; without one, keep a copy of the file and ask for help before you change it.';

/** What to do about a finding, by the doctor's code. */
const HINTS: Record<string, string> = {
  'database-missing': RESTORE,
  'database-empty': RESTORE,
  'database-unreadable': RESTORE,
  'database-damaged': RESTORE,
  'database-references': RESTORE,
  'database-foreign':
    'Move the file that does not belong there away, then put the right one back or restore a snapshot.',
  'database-newer': 'Use the newer Bridge that wrote it, or restore a snapshot from before.',
  'database-older': 'Nothing to do: it is copied and upgraded when the broker next starts.',
  'json-unreadable': 'Make the file readable for you.',
  'json-damaged': 'Mend the file by hand, or restore a snapshot.',
  'json-shape': 'Mend the file by hand, or restore a snapshot.',
  'json-newer': 'Use the newer Bridge that wrote it.',
  'journal-damaged': 'Move the receipt away by hand: messages that it names may be shown once more.',
  'secret-damaged': 'Stop all bridge processes and remove the file: a new secret is made.',
  'not-a-file': 'Move it away: a regular file belongs there.',
  symlink: 'Put the file itself there: links are not followed by snapshots.',
  'open-to-others': 'Take the rights of others away: `chmod go=` on it.',
  'temp-abandoned': '`bridge doctor --fix` moves it to archive/orphaned, byte for byte.',
  'unknown-file': 'Nothing of Bridge’s: move it out of the home if you do not know it either.',
  'lease-stale': 'The next broker clears it, and so does `bridge doctor --fix`.',
  'lease-unreadable': 'Stop every bridge process, then remove it by hand.',
  'lock-left':
    'Wait while its process works; else stop every bridge process, remove it by hand and do the maintenance again.',
  'snapshot-damaged': 'Do not rely on it: make a new one, then move it away.',
  'snapshot-unfinished': 'A failed attempt, kept as it is; move it away when you do not need it.',
  'restore-unfinished': 'Run the same restore again; what it displaced is in the recovery set.',
  'file-unreadable': 'Make it readable for you.',
};

/** What to do about a finding, '' for a code that this page does not know. */
export function hintOf(code: string): string {
  return HINTS[code] ?? '';
}

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

/** Bytes for people: "0 B", "12 kB", "3.4 MB". */
export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = n;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit > 0 && value < 9.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[unit] ?? ''}`;
}

/** What a published set holds: everything, or only messages and job routes. */
export function backupSort(path: string): string {
  return path.startsWith('message-backups/') ? 'messages only' : 'full';
}

/** The command lines of maintenance, from the one that connects agents: same program, same home. */
export function commands(install: string, report: DoctorReport) {
  const doctor = install.replace(/^((?:'[^']*'|\S)+) install\b/, '$1 doctor');
  const newest = report.backups.find((b) => backupSort(b.path) === 'full');
  return [
    { does: 'Take a full snapshot', line: `${doctor} --backup` },
    { does: 'Prove that the newest snapshot can be restored', line: `${doctor} --drill` },
    { does: 'Go back to a snapshot, once every session has ended', line: restoreLine(doctor, newest?.path) },
    ...(report.findings.some((f) => f.fixable)
      ? [{ does: 'Mend what can be mended', line: `${doctor} --fix` }]
      : []),
  ];
}

function restoreLine(doctor: string, snapshot: string | undefined): string {
  return `${doctor} --restore ${snapshot?.split('/').at(-1) ?? '<snapshot>'}`;
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
