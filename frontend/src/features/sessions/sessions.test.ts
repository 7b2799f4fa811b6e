import { describe, expect, it } from 'vitest';
import { peer } from '../../lib/sample';
import { byProject, transportSentence } from './sessions';

it('groups sessions by folder, all in order', () => {
  const groups = byProject([
    peer({ id: '1', name: 'opencode-web', cwd: '/w/web' }),
    peer({ id: '2', name: 'claude-web', cwd: '/w/web' }),
    peer({ id: '3', name: 'codex-api', cwd: '/w/api' }),
  ]);
  expect(groups.map((g) => [g.project, ...g.peers.map((p) => p.name)])).toEqual([
    ['api', 'codex-api'],
    ['web', 'claude-web', 'opencode-web'],
  ]);
});

describe('how a message will reach a session', () => {
  it.each([
    [
      { transport: 'channel', state: 'busy' as const },
      'Goes over its channel at its next safe step; the running turn is never interrupted.',
    ],
    [{ transport: 'hooks' }, 'Handed over by its hooks; it is idle and will be woken.'],
    [
      { transport: 'hooks', autoWake: false, wakeOnDirect: false },
      'Handed over by its hooks; it is idle and reads at its next turn.',
    ],
    [
      { transport: 'hooks', agent: 'antigravity' },
      'Handed over by its hooks; it is idle and reads at its next turn.',
    ],
    [{ transport: 'tools only' }, 'Waits in its inbox until it looks; nothing can wake it.'],
    [
      { transport: 'carrier pigeon', autoWake: false },
      'Goes by carrier pigeon; it is idle and will be woken.',
    ],
  ])('%j', (over, want) => {
    expect(transportSentence(peer(over))).toBe(want);
  });
});
