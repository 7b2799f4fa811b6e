import { describe, expect, it } from 'vitest';
import { href, parseRoute, type Place } from './route';

describe('routes', () => {
  it.each<[Place, string]>([
    [{ page: 'overview' }, '#/overview'],
    [{ page: 'needs' }, '#/needs'],
    [{ page: 'sessions' }, '#/sessions'],
    [{ page: 'session', name: 'claude-api' }, '#/sessions/claude-api'],
    [{ page: 'child', name: 'a/b', child: 'c 1/2' }, '#/sessions/a%2Fb/c%201%2F2'],
    [{ page: 'storage' }, '#/storage'],
    [{ page: 'network' }, '#/network'],
    [{ page: 'search' }, '#/search'],
    [{ page: 'search', q: 'from:api a&b?', kind: 'run' }, '#/search?q=from%3Aapi%20a%26b%3F&kind=run'],
    [{ page: 'sessions', sort: 'name', state: 'busy' }, '#/sessions?sort=name&state=busy'],
    [{ page: 'topic', topic: 'release/notes ?' }, '#/decisions/release%2Fnotes%20%3F'],
    [{ page: 'topic', topic: '..' }, '#/decisions/..'],
    [{ page: 'runs' }, '#/runs'],
    [{ page: 'run', job: 'codex-job-0a1b2c3d', tab: '' }, '#/runs/codex-job-0a1b2c3d'],
    [{ page: 'run', job: 'codex-job-0a1b2c3d', tab: 'changes' }, '#/runs/codex-job-0a1b2c3d/changes'],
    [{ page: 'settings' }, '#/settings'],
  ])('%j there and back', (place, hash) => {
    expect(href(place)).toBe(hash);
    expect(parseRoute(hash)).toEqual({ place, message: null });
    expect(parseRoute(href(place, 'm&1'))).toEqual({ place, message: 'm&1' });
  });

  it.each(['', '#', '#/', '#/nothing', '#/nothing/at/all'])('%j is the overview', (hash) => {
    expect(parseRoute(hash).place).toEqual({ page: 'overview' });
  });

  it('survives an address that nobody could have encoded', () => {
    expect(parseRoute('#/decisions/100%').place).toEqual({ page: 'topic', topic: '100%' });
  });
});
