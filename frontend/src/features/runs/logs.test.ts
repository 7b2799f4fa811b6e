import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../../lib/api';
import { RunLog, TAIL } from './log.svelte';

/** A log on a server that gives at most `piece` bytes at once. */
function serve(piece: number) {
  const server = { text: '', asked: [] as number[] };
  vi.spyOn(api, 'runLog').mockImplementation((_, from) => {
    server.asked.push(from);
    const text = server.text.slice(from, from + piece);
    return Promise.resolve({
      text,
      next: Math.min(from + text.length, server.text.length),
      size: server.text.length,
    });
  });
  return server;
}

beforeEach(() => void vi.restoreAllMocks());

describe('JOB-10 a log that is read by its bytes', () => {
  it('reads each byte once, in pieces, and goes on where it was', async () => {
    const server = serve(10);
    server.text = 'one\ntwo\nthree\nfour\n';
    const log = new RunLog('j');
    await log.read();
    expect(log.raw).toBe(server.text);
    server.text += 'five\n';
    await Promise.all([log.read(), log.read()]);
    expect(log.raw).toBe(server.text);
    expect(server.asked).toEqual([0, 10, 19, 24]);
  });

  it('reads once more for what it heard of while it was reading', async () => {
    const server = serve(100);
    server.text = 'one\n';
    const log = new RunLog('j');
    const first = log.read();
    server.text += 'two\n';
    await Promise.all([first, log.read(), log.read()]);
    expect(log.raw).toBe('one\ntwo\n');
    expect(server.asked).toEqual([0, 4]);
  });

  it('begins a long one near its end, at a whole line, and with its first byte when asked', async () => {
    const server = serve(100_000);
    server.text = 'a line of the log\n'.repeat(40_000);
    const log = new RunLog('j');
    await log.read();
    expect(log.before).toBe(server.text.length - TAIL);
    expect(log.raw.length).toBeLessThanOrEqual(TAIL);
    expect(log.raw.startsWith('a line')).toBe(true);
    expect(server.asked.length).toBeLessThan(6);
    await log.fromStart();
    expect(log.before).toBe(0);
    expect(log.raw).toBe(server.text);
  });

  it('keeps what it has when it cannot be read, and says why', async () => {
    const server = serve(100);
    server.text = 'one\n';
    const log = new RunLog('j');
    await log.read();
    vi.spyOn(api, 'runLog').mockRejectedValueOnce(new Error('no such run'));
    await log.read();
    expect([log.raw, log.problem]).toEqual(['one\n', 'no such run']);
    await log.read();
    expect(log.problem).toBe('');
  });
});
