import { describe, expect, it } from 'vitest';
import { delivery, message, overdue, peer, state } from '../../lib/sample';
import { findNeeds } from './needs';

const now = 10 * 3_600_000;
const titles = (...messages: ReturnType<typeof message>[]) =>
  findNeeds(state({ messages, peers: [peer()] }), 'live', now).map((n) => n.title);

describe('needs you', () => {
  it('is empty when all is where it should be', () => {
    expect(titles(message({ created_at: 0 }))).toEqual([]); // how long is too long is not judged here
    expect(findNeeds(null, 'loading', now)).toEqual([]);
  });

  it('names the mail that the server says waits for too long', () => {
    const waits = overdue({ messages: 2, oldest: 'm-2', since: now - 16 * 60_000 });
    expect(findNeeds(state({ overdue: [waits] }), 'live', now)).toMatchObject([
      { title: 'codex-web has not read 2 messages for 16 min', message: 'm-2', dismissible: true },
    ]);
  });

  it('says whether the session is away, busy or idle', () => {
    const detail = (...peers: ReturnType<typeof peer>[]) =>
      findNeeds(state({ peers, overdue: [overdue()] }), 'live', now)[0]?.detail;
    expect(detail()).toContain('not connected');
    expect(detail(peer({ id: 'p-2' }))).toContain('not connected'); // another one of its name
    expect(detail(peer({ state: 'busy' }))).toContain('busy');
    expect(detail(peer())).toContain('idle');
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
