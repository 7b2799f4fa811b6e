import { describe, expect, it } from 'vitest';
import type { Invitation, Network, PairedPC, PCList, Team } from '../../lib/api';
import {
  addressWords,
  allowed,
  changeOf,
  changesNothing,
  codeShown,
  draftOf,
  endedJob,
  ending,
  folderOffers,
  hubState,
  left,
  linkState,
  localName,
  sameName,
  openness,
  othersWithJobs,
  rebased,
  rebasedList,
  shownWords,
  teamChangeOf,
  teamDraftOf,
  teammates,
  thereWords,
  wrongCodes,
} from './network';

const nothing = { jobs: false, messages: false, decisions: false, dashboard: false, files: false };

function pc(over: Partial<PairedPC> = {}): PairedPC {
  return {
    name: 'desk',
    id: 'd',
    fingerprint: 'dddd dddd dddd',
    up: false,
    since: null,
    release: '',
    capabilities: [],
    update: '',
    failed: '',
    allowed: nothing,
    may: 'desk may do nothing here.',
    member: false,
    paired: true,
    before: null,
    ...over,
  };
}

function team(over: Partial<Team> = {}): Team {
  return {
    team: 'crew',
    name: 'laptop',
    id: 'h',
    fingerprint: '4444 4444 4444',
    own: false,
    up: true,
    since: 1,
    server: 'hub-2',
    failed: '',
    decisions: false,
    may: '',
    unheard: [],
    sees: '',
    carried: '',
    seal: false,
    dropped: [],
    watched: 1,
    waits: null,
    ...over,
  };
}

describe('the team', () => {
  const mate = (name: string, up: boolean, paired = false) =>
    pc({ name, id: name, up, paired, member: true });
  it('has who is there first, and those that are paired among the pairs', () => {
    const peers = [
      mate('c', false),
      mate('b', true),
      mate('a', false),
      mate('d', true, true),
      pc({ name: 'e' }),
    ];
    expect(teammates(network({ peers })).map((member) => member.name)).toEqual(['b', 'a', 'c']);
    expect(thereWords(network({ peers, team: team() }))).toBe('2 of 4 other PCs are there.');
  });
  it.each([
    [[], true, ''],
    [[mate('a', true)], true, 'The one other PC is there.'],
    [[mate('a', false)], true, 'The one other PC is not there.'],
    [[mate('a', false)], false, ''],
  ])('says how many are there, where that is known', (peers, up, words) => {
    expect(thereWords(network({ peers, team: team({ up }) }))).toBe(words);
  });
  it('says by which node the hub is reached, or why not', () => {
    expect(hubState(team())).toEqual({ sign: 'good', words: 'Connected to the hub’s node hub-2' });
    expect(hubState(team({ up: false, failed: 'EOF' }))).toEqual({
      sign: 'bad',
      words: 'The hub is not reached: EOF',
    });
  });
  it('says of a server of the team’s own that it is one', () => {
    const own = { own: true, server: 'nats-1' };
    expect(hubState(team(own)).words).toBe('Connected to the team’s own NATS server nats-1');
    expect(hubState(team({ ...own, up: false, failed: 'EOF' })).words).toBe(
      'The team’s own NATS server is not reached: EOF',
    );
  });
  it('says of its PCs that they are there, not that they are linked', () => {
    expect(linkState(mate('a', true), true).words).toBe('there');
    expect(linkState(mate('a', false), true).words).toBe('not there');
    expect(linkState(mate('a', false), false).words).toBe('not reached: links are off here');
    expect(linkState(mate('a', false), true, false).words).toBe('not reached');
    expect(linkState(mate('a', true, true), true).words).toBe('linked');
  });
});

function network(over: Partial<Network> = {}, policy: Partial<Network['policy']> = {}): Network {
  return {
    name: 'laptop',
    id: 'l',
    fingerprint: '1111 1111 1111',
    enabled: true,
    listening: [],
    failed: '',
    invitation: null,
    team: null,
    peers: [pc()],
    ...over,
    policy: {
      revision: 'r',
      listen: [],
      port: 4778,
      own: ['192.168.1.20'],
      jobsEnabled: false,
      allowRoots: [{ path: '/src', warning: '' }],
      agents: ['codex'],
      kinds: ['claude', 'codex'],
      maxAccess: 'edit',
      jobsOff: '',
      unpaired: [],
      otherTeams: [],
      ...policy,
    },
  };
}

const invitation = (over: Partial<Invitation> = {}): Invitation => ({
  id: 'i',
  state: 'open',
  code: '7K3M-QX9T',
  addresses: ['192.168.1.20:4778'],
  localOnly: false,
  expiresAt: 600_000,
  wrongCodes: 0,
  burntAt: 3,
  peer: null,
  ...over,
});

describe('RMT-01 a code', () => {
  it.each([
    [600_000, 0, '10:00 left'],
    [600_000, 1, '10:00 left'],
    [600_000, 1_000, '9:59 left'],
    [600_000, 540_500, '1:00 left'],
    [600_000, 599_999, '0:01 left'],
    [600_000, 600_000, '0:00 left'],
    [600_000, 700_000, '0:00 left'],
  ])('that is good until %i says at %i: %s', (until, now, words) => {
    expect(left(until, now)).toBe(words);
  });

  it('says what wrong ones do', () => {
    expect(wrongCodes(invitation())).toBe('After three wrong codes it is burnt.');
    expect(wrongCodes(invitation({ wrongCodes: 1 }))).toBe('One wrong code so far; after three it is burnt.');
    expect(wrongCodes(invitation({ wrongCodes: 2 }))).toBe(
      'Two wrong codes so far; after three it is burnt.',
    );
    expect(ending(invitation({ state: 'burnt' }))).toMatch(/^Three wrong codes were given/);
    expect(ending(invitation({ state: 'expired' }))).toMatch(/^The code has expired\./);
  });

  it.each([
    ['7k3mqx9t', '7K3M-QX9T'],
    ['7k3m', '7K3M'],
    ['7k3mq', '7K3M-Q'],
    ['7K3M-QX9T', '7K3M-QX9T'],
    [' 7k3m qx9t and more', '7K3M-QX9T'],
    ['', ''],
  ])('typed as %j is shown as %j', (typed, shown) => {
    expect(codeShown(typed)).toBe(shown);
  });
});

describe('RMT-01 where others come in', () => {
  it('is said in words', () => {
    expect(openness(network({ enabled: false })).words).toBe(
      'Links with other PCs are off: nothing crosses.',
    );
    expect(openness(network()).words).toContain('as soon as a PC is paired');
    expect(openness(network({ listening: ['127.0.0.1:4778'] })).words).toContain('no other PC can reach');
    expect(openness(network({ listening: ['192.168.1.20:4778'] })).words).toBe(
      'Links are on; this PC listens at 192.168.1.20:4778.',
    );
    expect(openness(network({ failed: 'the port is taken' }))).toEqual({
      sign: 'bad',
      words: 'Links are on, but no PC can connect: the port is taken',
    });
  });

  it('names what an address is', () => {
    expect(addressWords('192.168.1.20', ['192.168.1.20'])).toBe('');
    expect(addressWords('10.0.0.1', ['192.168.1.20'])).toBe('not an address of this PC now');
    expect(addressWords('0.0.0.0', [])).toContain('all addresses');
    expect(addressWords('127.0.0.1', [])).toBe('this PC only');
  });

  it('is linked or not, and off is no fault', () => {
    expect(linkState(pc({ up: true }), true).sign).toBe('good');
    expect(linkState(pc(), true)).toEqual({ sign: 'waiting', words: 'not linked' });
    expect(linkState(pc(), false).sign).toBe('off');
  });
});

describe('RMT-06 a change of what a PC may do', () => {
  it('has what is another now, and nothing else', () => {
    const base = network();
    const draft = draftOf(base, pc());
    expect(changesNothing(changeOf(base, pc(), draft))).toBe(true);
    draft.allowed.files = true;
    expect(changeOf(base, pc(), draft)).toEqual({ peers: [{ id: 'd', files: true }] });
    draft.enabled = false;
    draft.roots = [];
    draft.agents = ['codex', 'claude'];
    expect(changeOf(base, pc(), draft)).toEqual({
      peers: [{ id: 'd', files: true }],
      enabled: false,
      allowRoots: [],
      agents: ['codex', 'claude'],
    });
    expect(pc().allowed.files).toBe(false); // what is shown was not written into
  });

  it('switches jobs on for the first PC that may have them', () => {
    const draft = draftOf(network(), pc());
    draft.allowed.jobs = true;
    expect(changeOf(network(), pc(), draft)).toEqual({ peers: [{ id: 'd', jobs: true }], jobsEnabled: true });
    expect(changeOf(network({}, { jobsEnabled: true }), pc(), draft)).toEqual({
      peers: [{ id: 'd', jobs: true }],
    });
  });

  it('takes nothing back that somebody else changed meanwhile', () => {
    const from = draftOf(network(), pc());
    const draft = {
      ...from,
      allowed: { ...from.allowed, files: true },
      roots: ['/src', '/mine'],
      agents: [],
    };
    const to = {
      enabled: false,
      allowed: { ...nothing, messages: true },
      roots: ['/theirs'],
      agents: ['codex', 'claude'],
    };
    expect(rebased(draft, from, to)).toEqual({
      enabled: false,
      allowed: { ...nothing, messages: true, files: true },
      roots: ['/theirs', '/mine'],
      agents: ['claude'],
    });
  });

  it.each([
    [['a', 'b'], ['a', 'b'], ['a'], ['a']],
    [['a', 'c'], ['a'], ['a', 'b'], ['a', 'b', 'c']],
    [[], ['a'], ['a', 'b'], ['b']],
    [['b'], [], ['b'], ['b']],
  ])('%j, of %j, that is %j by now, is %j', (mine, from, to, want) => {
    expect(rebasedList(mine, from, to)).toEqual(want);
  });

  it('names the other PCs that folders and agents count for', () => {
    const other = pc({ id: 'n', name: 'nas', allowed: { ...nothing, jobs: true } });
    expect(othersWithJobs(network({ peers: [pc(), other, pc({ id: 'x', name: 'x' })] }), pc())).toEqual([
      'nas',
    ]);
  });
});

describe('RMT-23 what another PC shows of itself', () => {
  const list = (over: Partial<PCList> = {}): PCList => ({
    name: 'desk',
    id: 'd',
    messages: false,
    sessions: [],
    jobs: [],
    asOf: 1000,
    failed: '',
    ...over,
  });
  const api = { name: 'desk/api', agent: 'codex', state: 'idle', cwd: '/src', since: 1 };
  it.each([
    [list({ sessions: [api] }), ''],
    [list(), 'Nobody is there now.'],
    [list({ asOf: null }), 'It has not been asked yet.'],
    [list({ asOf: null, failed: 'desk says: no' }), 'Nothing is shown: desk says: no.'],
    [
      list({ sessions: [api], failed: 'there is no link to it now' }),
      'This is no longer the newest: there is no link to it now.',
    ],
  ])('%j: %s', (shown, words) => {
    expect(shownWords(shown)).toBe(words);
  });

  it.each(['queued', 'starting', 'running', 'waiting'])('a job that is %s goes on', (status) => {
    expect(endedJob({ name: 'desk/j', agent: 'codex', status, title: '', cwd: '', since: 0 })).toBe(false);
  });
  it.each(['finished', 'failed', 'cancelled', 'anything else'])('one that is %s has ended', (status) => {
    expect(endedJob({ name: 'desk/j', agent: 'codex', status, title: '', cwd: '', since: 0 })).toBe(true);
  });
  it('is named as its own PC names it', () => {
    expect([localName('desk/api'), localName('api')]).toEqual(['api', 'api']);
  });
});

describe('what the whole team shares', () => {
  const network = { enabled: true, team: team() } as Network;

  it('HUB-06 is a change only where it is another now, and names the team that was meant', () => {
    expect(teamDraftOf(network)).toEqual({ enabled: true, decisions: false, seal: false });
    expect(teamDraftOf({ ...network, team: null })).toEqual({ enabled: true, decisions: false, seal: false });
    expect(teamChangeOf(network, 'crew', { enabled: true, decisions: false, seal: false })).toEqual({});
    expect(teamChangeOf(network, 'crew', { enabled: true, decisions: true, seal: false })).toEqual({
      team: { team: 'crew', decisions: true },
    });
    expect(teamChangeOf(network, 'crew', { enabled: true, decisions: false, seal: true })).toEqual({
      team: { team: 'crew', seal: true },
    });
    expect(teamChangeOf(network, 'crew', { enabled: false, decisions: false, seal: false })).toEqual({
      enabled: false,
    });
  });
});

describe('PCs of one name', () => {
  const desk = pc({ name: 'desk', id: 'd-1' });
  it.each([
    ['of this PC', 'Desk', [desk], /^It has the name of this PC/],
    ['of another pair', 'laptop', [desk, pc({ name: 'DESK', id: 'd-2' })], /^Another PC has this name/],
    ['of nobody else', 'laptop', [desk, pc({ name: 'den', id: 'd-3' })], /^$/],
  ])('the name %s', (_, name, peers, words) => {
    expect(sameName(network({ name, peers }), desk)).toMatch(words);
  });
});

describe('RMT-06 what is chosen with the first permission', () => {
  const draft = { enabled: false, allowed: nothing, roots: [], agents: [] };

  it('turns links on with the first one alone, and takes the agents that are used here', () => {
    const jobs = allowed(draft, 'jobs', true, ['codex']);
    expect(jobs).toEqual({ ...draft, enabled: true, allowed: { ...nothing, jobs: true }, agents: ['codex'] });
    expect(allowed({ ...jobs, enabled: false }, 'files', true, []).enabled).toBe(false);
    expect(allowed({ ...draft, agents: ['claude'] }, 'jobs', true, ['codex']).agents).toEqual(['claude']);
    expect(allowed(draft, 'files', true, ['codex']).agents).toEqual([]);
    expect(allowed(jobs, 'jobs', false, ['codex'])).toEqual({ ...jobs, allowed: nothing });
  });

  it('offers the folders of sessions that are not allowed yet', () => {
    const peers = ['/b', '/a', '/a', '/src/x', '/src', '/srcs', '', '/c', '/d', '/e'].map((cwd) => ({ cwd }));
    expect(folderOffers(peers, ['/src'])).toEqual(['/a', '/b', '/c', '/d']);
    expect(folderOffers([{ cwd: '/srcs' }, { cwd: 'C:\\src\\x' }], ['/src', 'C:\\src'])).toEqual(['/srcs']);
  });
});
