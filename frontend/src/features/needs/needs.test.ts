import { describe, expect, it } from 'vitest';
import { delivery, message, peer, state } from '../../lib/sample';
import { findNeeds, UNREAD_TOO_LONG } from './needs';

const now = 10 * UNREAD_TOO_LONG;
const late = now - UNREAD_TOO_LONG;
const titles = (...messages: ReturnType<typeof message>[]) =>
  findNeeds(state({ messages, peers: [peer()] }), 'live', now).map((n) => n.title);

describe('needs you', () => {
  it('is empty when all is where it should be', () => {
    expect(titles(message({ created_at: late, deliveries: [delivery('handed')] }))).toEqual([]);
    expect(findNeeds(null, 'loading', now)).toEqual([]);
  });

  it('names mail that waits too long, once for each session', () => {
    expect(titles(message({ created_at: late + 1 }))).toEqual([]);
    expect(
      titles(message({ id: 'm-1', created_at: late }), message({ id: 'm-2', created_at: late - 60_000 })),
    ).toEqual(['codex-web has not read 2 messages for 16 min']);
  });

  it('leaves decisions alone: they wait for a turn by design', () => {
    expect(titles(message({ kind: 'decision', created_at: 0 }))).toEqual([]);
  });

  it('says whether the session is away, busy or idle', () => {
    const detail = (peers: ReturnType<typeof peer>[]) =>
      findNeeds(state({ peers, messages: [message({ created_at: late })] }), 'live', now)[0]?.detail;
    expect(detail([])).toContain('not connected');
    expect(detail([peer({ state: 'busy' })])).toContain('busy');
    expect(detail([peer()])).toContain('idle');
  });

  it('names each message that expired unread', () => {
    const lost = message({ state: 'expired', deliveries: [delivery('expired'), delivery('consumed')] });
    expect(titles(lost)).toEqual(['A message from claude-api to codex-web expired unread']);
  });

  it('STO-01 names a storage with errors, not one with warnings, and that cannot be put away', () => {
    const of = (errors: number) =>
      findNeeds(state({ storage: { ok: errors === 0, errors, warnings: 2, lastBackup: null } }), 'live', now);
    expect(of(0)).toEqual([]);
    expect(of(1)).toMatchObject([
      { title: 'The storage has 1 error', place: { page: 'storage' }, dismissible: false },
    ]);
  });

  it('names a broker that is down, and that cannot be put away', () => {
    const down = state({ broker: { state: 'offline', host: 'serve', pid: null } });
    expect(findNeeds(down, 'offline', now)).toMatchObject([{ sort: 'offline', dismissible: false }]);
  });
});
