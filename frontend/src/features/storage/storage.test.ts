import { afterEach, describe, expect, it, vi } from 'vitest';
import { api, Failed, type ArchiveMessage, type DoctorReport, type Work } from '../../lib/api';
import {
  around,
  backupSort,
  bySize,
  endedWords,
  healthSentence,
  plot,
  progress,
  proofOf,
  runningWords,
  sentence,
  storageLine,
  summarize,
  worthALine,
} from './storage';
import { ArchiveSearch } from './storage.svelte';

afterEach(() => vi.restoreAllMocks());

function report(over: Partial<DoctorReport> = {}): DoctorReport {
  return {
    checkedAt: 0,
    ok: true,
    schema: [],
    findings: [],
    sizes: [],
    totalBytes: 0,
    backups: [],
    ...over,
  };
}
const finding = (severity: 'error' | 'warning') => ({
  severity,
  code: 'temp-abandoned',
  path: 'x',
  detail: '',
  fixable: false,
});

describe('STO-03 healthy or not, in one sentence', () => {
  it.each([
    [report(), 'Healthy: nothing is wrong.', 'storage healthy, no backup yet'],
    [
      report({ findings: [finding('warning')], backups: [{ path: 'backups/s', createdAt: 1000 }] }),
      'Sound, with 1 warning.',
      'storage sound, 1 warning, backup 59 s ago',
    ],
    [
      report({ ok: false, findings: [finding('error'), finding('error')] }),
      'Not healthy: 2 errors.',
      'storage has 2 errors, no backup yet',
    ],
    [
      report({ ok: false, findings: [finding('error'), finding('warning')] }),
      'Not healthy: 1 error and 1 warning.',
      'storage has 1 error, no backup yet',
    ],
  ])('case %#', (given, sentence, line) => {
    expect(healthSentence(summarize(given))).toBe(sentence);
    expect(storageLine(summarize(given), 60_000)).toBe(line);
  });

  it('claims nothing before the first check', () => {
    const unknown = { ok: null, errors: 0, warnings: 0, lastBackup: null };
    expect([healthSentence(unknown), storageLine(unknown, 0)]).toEqual(['Not checked yet.', '']);
  });
});

describe('DSK-06 maintenance in words', () => {
  const work = (over: Partial<Work> = {}): Work => ({
    action: 'backup',
    state: 'running',
    began: 1,
    ended: null,
    step: '',
    done: 0,
    all: 0,
    result: '',
    ...over,
  });
  it.each([
    [{}, 'Backing up', null],
    [{ step: 'copying bridge.db', done: 42, all: 99 }, 'Backing up: copying bridge.db, 42 %', 42 / 99],
    [
      { action: 'archive', step: 'archiving messages', done: 9, all: 9 },
      'Archiving: archiving messages',
      null,
    ],
  ] as const)('%j', (over, words, part) => {
    expect(runningWords(work(over))).toBe(words);
    expect(progress(work(over))).toBe(part);
  });
  it('says how it ended, and hints as sentences', () => {
    expect(endedWords(work({ action: 'drill', state: 'failed' }))).toBe('Restore drill failed');
    expect(sentence('mend the file by hand')).toBe('Mend the file by hand.');
    expect(sentence('`bridge doctor --fix` moves it.')).toBe('`bridge doctor --fix` moves it.');
    expect(sentence('')).toBe('');
  });
  it('knows which backup was proven, and which is of messages only', () => {
    const proof = { at: 1, snapshot: 'snapshot-1', ok: true, detail: '', files: 1, rows: 1 };
    expect(proofOf('backups/snapshot-1', [proof])).toBe(proof);
    expect(proofOf('backups/snapshot-2', [proof])).toBeUndefined();
    expect(['message-backups/messages-2', 'backups/snapshot-1'].map(backupSort)).toEqual([
      'messages only',
      'full',
    ]);
  });
  it('counts side files to their database', () => {
    const sizes = [
      { path: 'backups', bytes: 40 },
      { path: 'bridge.db', bytes: 30 },
      { path: 'bridge.db-wal', bytes: 20 },
      { path: 'config.json', bytes: 0 },
    ];
    expect(bySize(report({ sizes }))).toEqual([
      { path: 'bridge.db', bytes: 50 },
      { path: 'backups', bytes: 40 },
    ]);
  });
  it('gives a line to what takes room, and not to what is small', () => {
    const sizes = (...all: number[]) => all.map((n) => ({ bytes: n }));
    expect(worthALine(sizes(900, 80, 10, 9, 1))).toBe(3);
    expect(worthALine(sizes(5, 5))).toBe(2);
    expect(worthALine(sizes(...Array.from({ length: 20 }, () => 5)))).toBe(8);
    expect(worthALine([])).toBe(0);
  });
  it('draws sizes from zero, in the time they were measured', () => {
    const at = (day: number, total: number) => ({ at: day, total, parts: {} });
    expect(plot([at(0, 50), at(1, 100), at(4, 25)], 400, 80)).toEqual([
      { x: 0, y: 40 },
      { x: 100, y: 0 },
      { x: 400, y: 60 },
    ]);
    expect(plot([], 400, 80)).toEqual([]);
    expect(plot([at(5, 0)], 400, 80)).toEqual([{ x: 400, y: 80 }]);
  });
});

describe('STO-12 search through all stored messages', () => {
  const row = (id: string, created_at: number): ArchiveMessage => ({
    id,
    created_at,
    from_name: 'a',
    from_agent: 'claude',
    to_target: 'b',
    recipients: 'b',
    body: id,
    hop: 0,
    reply_to: null,
  });
  const page = (from: number) => Array.from({ length: 50 }, (_, i) => row(`m-${from - i}`, from - i));
  const ids = (search: ArchiveSearch) => search.found?.map((m) => m.id);

  it('goes back page by page and loses none of the same millisecond', async () => {
    const asked = vi.spyOn(api, 'searchArchive').mockResolvedValueOnce({ messages: page(200) });
    const search = new ArchiveSearch();
    await search.ask('m');
    expect([search.found?.length, search.complete]).toEqual([50, false]);
    const [last] = (search.found ?? []).slice(-1);
    asked.mockResolvedValueOnce({ messages: [row('twin', 151), ...(last ? [last] : []), row('m-3', 3)] });
    await search.older();
    expect(asked).toHaveBeenLastCalledWith('m', 50, 152);
    expect(ids(search)?.slice(-3)).toEqual(['m-151', 'twin', 'm-3']);
    expect(search.complete).toBe(true);
  });

  it('throws away the answer that a newer question overtook', async () => {
    let late: (v: { messages: ArchiveMessage[] }) => void = () => undefined;
    vi.spyOn(api, 'searchArchive')
      .mockReturnValueOnce(new Promise((resolve) => (late = resolve)))
      .mockResolvedValueOnce({ messages: [row('new', 1)] });
    const search = new ArchiveSearch();
    const first = search.ask('a');
    await search.ask('ab');
    late({ messages: [row('old', 1)] });
    await first;
    expect([search.query, ids(search)]).toEqual(['ab', ['new']]);
    await search.ask('');
    expect(search.found).toBeNull();
  });

  it('keeps what is shown when the next page cannot be had', async () => {
    const asked = vi.spyOn(api, 'searchArchive').mockResolvedValueOnce({ messages: [row('one', 9)] });
    const search = new ArchiveSearch();
    await search.ask('o');
    asked.mockRejectedValueOnce(new Failed('the query is too long'));
    await search.older();
    expect([ids(search), search.problem]).toEqual([['one'], 'the query is too long']);
  });

  it('shows the place that was found', () => {
    expect(around('say hello there', 'hello', 100)).toEqual({
      before: 'say ',
      match: 'hello',
      after: ' there',
    });
    expect(around('x'.repeat(50) + 'hello' + 'y'.repeat(50), 'hello', 3)).toEqual({
      before: '…xxx',
      match: 'hello',
      after: 'yyy…',
    });
    expect(around('a\u00a0b', 'zzz', 5).match).toBe('');
  });
});
