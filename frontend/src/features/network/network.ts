// What is said about other PCs, and what of the policy is edited: without markup.

import type {
  Invitation,
  Network,
  PairedPC,
  PCAllowed,
  PCJob,
  PCList,
  PCName,
  Peer,
  PolicyChange,
  Team,
} from '../../lib/api';
import { isWithin } from '../../lib/path';
import type { Sign } from '../../ui/signs';

/** How long a code is good for: "9:41 left". */
export function left(until: number, now: number): string {
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left`;
}

const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five'];
const number = (n: number) => NUMBERS[n] ?? String(n);
const codes = (n: number) => `${number(n)} wrong code${n === 1 ? '' : 's'}`;

/** What wrong codes do, and how many there were. */
export function wrongCodes({ wrongCodes: given, burntAt }: Invitation): string {
  if (given === 0) return `After ${codes(burntAt)} it is burnt.`;
  const first = codes(given);
  return `${first.charAt(0).toUpperCase()}${first.slice(1)} so far; after ${number(burntAt)} it is burnt.`;
}

/** What became of an invitation that nobody paired by. */
export function ending({ state, burntAt }: Invitation): string {
  if (state !== 'burnt') return 'The code has expired. Create a new one.';
  const many = codes(burntAt);
  return `${many.charAt(0).toUpperCase()}${many.slice(1)} were given, so nobody can pair by it any more. If that was not you, somebody else reaches this address.`;
}

/** Whether links are on, and where others come in. */
export function openness(network: Network): { sign: Sign; words: string } {
  if (!network.enabled) return { sign: 'off', words: 'Links with other PCs are off: nothing crosses.' };
  if (network.failed !== '')
    return { sign: 'bad', words: `Links are on, but no PC can connect: ${network.failed}` };
  if (network.listening.length === 0)
    return { sign: 'good', words: 'Links are on; it listens as soon as a PC is paired.' };
  const local = network.listening.every(isLocal);
  return {
    sign: 'good',
    words: `Links are on; this PC listens at ${network.listening.join(', ')}${local ? ', which no other PC can reach: it calls them' : ''}.`,
  };
}

/** Whether no other PC can reach this host:port. */
export const isLocal = (address: string) => /^(127\.|\[::1\]|localhost)/.test(address);

/** The way to the team's hub, as a sentence without its end: since when comes after it. */
export function hubState(team: Team): { sign: Sign; words: string } {
  const server = team.own ? 'team’s own NATS server' : 'hub';
  if (!team.up) return { sign: 'bad', words: `The ${server} is not reached: ${team.failed}` };
  return { sign: 'good', words: `Connected to the ${team.own ? server : 'hub’s node'} ${team.server}` };
}

/** The team's PCs: who is there first. Those that are paired stand among the pairs. */
export const teammates = (network: Network) =>
  network.peers
    .filter((pc) => pc.member && !pc.paired)
    .toSorted((a, b) => Number(b.up) - Number(a.up) || a.name.localeCompare(b.name));

/** How many of a team are there: "2 of 3 other PCs are there". */
export function thereWords(network: Network): string {
  const all = network.peers.filter((pc) => pc.member);
  if (network.team?.up !== true || all.length === 0) return '';
  const there = all.filter((pc) => pc.up).length;
  if (all.length === 1) return there === 1 ? 'The one other PC is there.' : 'The one other PC is not there.';
  return `${there} of ${all.length} other PCs are there.`;
}

/** Whether a PC is reached now. */
export function linkState(pc: PairedPC, enabled: boolean, hubUp = true): { sign: Sign; words: string } {
  if (!pc.paired) {
    if (pc.up) return { sign: 'good', words: 'there' };
    if (!enabled) return { sign: 'off', words: 'not reached: links are off here' };
    return { sign: 'waiting', words: hubUp ? 'not there' : 'not reached' };
  }
  if (pc.up) return { sign: 'good', words: 'linked' };
  if (!enabled) return { sign: 'off', words: 'not linked: links are off here' };
  return { sign: 'waiting', words: 'not linked' };
}

/** The name without that of its PC: "api" of "desk/api". */
export const localName = (name: string) => name.slice(name.indexOf('/') + 1);

const GOING = ['queued', 'starting', 'running', 'waiting'];
export const endedJob = ({ status }: PCJob) => !GOING.includes(status);

/** What is said beside the lists of a PC: why there is nothing, or nothing newer. '' where they speak for themselves. */
export function shownWords({ sessions, jobs, asOf, failed }: PCList): string {
  const any = sessions.length + jobs.length > 0;
  if (failed !== '') return any ? `This is no longer the newest: ${failed}.` : `Nothing is shown: ${failed}.`;
  if (asOf === null) return 'It has not been asked yet.';
  return any ? '' : 'Nobody is there now.';
}

export type Kind = keyof PCAllowed;

/** What can be allowed, in the order of the page. */
export const KINDS: readonly { kind: Kind; label: string; means: string }[] = [
  {
    kind: 'jobs',
    label: 'Have jobs done here',
    means: 'By your own agents and settings, below the folders that you name.',
  },
  {
    kind: 'messages',
    label: 'Write to sessions',
    means: 'Its messages reach the sessions of this PC, under its name.',
  },
  {
    kind: 'decisions',
    label: 'Share decisions',
    means: 'Those for everybody, in both directions. What is of a project or a session never leaves this PC.',
  },
  {
    kind: 'dashboard',
    label: 'See sessions and jobs',
    means: 'Which there are and how they stand, to read only; no message and no file.',
  },
  { kind: 'files', label: 'Send files', means: 'Into the inbox folder, checked, never opened or run.' },
];

/** What the owner has chosen for one PC, before it is saved. */
export interface Draft {
  enabled: boolean;
  allowed: PCAllowed;
  roots: string[];
  agents: string[];
}

export function draftOf(network: Network, pc: PairedPC): Draft {
  return {
    enabled: network.enabled,
    allowed: { ...pc.allowed },
    roots: network.policy.allowRoots.map((root) => root.path),
    agents: [...network.policy.agents],
  };
}

/**
 * Returns the draft with a kind of request allowed or denied. The first one that is allowed turns
 * links on, because nothing crosses without them; jobs get the agents that are used here.
 */
export function allowed(draft: Draft, kind: Kind, on: boolean, agentsHere: string[]): Draft {
  const next = { ...draft, allowed: { ...draft.allowed, [kind]: on } };
  if (!on) return next;
  return {
    ...next,
    enabled: draft.enabled || !Object.values(draft.allowed).some(Boolean),
    agents: kind === 'jobs' && draft.agents.length === 0 ? agentsHere : draft.agents,
  };
}

/** The folders of sessions that are connected here, to be offered for jobs: the first four that are not allowed yet. */
export function folderOffers(peers: Pick<Peer, 'cwd'>[], roots: string[]): string[] {
  const known = (folder: string) => roots.some((root) => isWithin(root, folder));
  const folders = peers.map(({ cwd }) => cwd).filter((folder) => folder !== '' && !known(folder));
  return [...new Set(folders)].toSorted().slice(0, 4);
}

/** The draft as a change: only what is another now, so that nothing else is touched. */
export function changeOf(network: Network, pc: PairedPC, draft: Draft): PolicyChange {
  const before = draftOf(network, pc);
  const change: PolicyChange = {};
  if (draft.enabled !== before.enabled) change.enabled = draft.enabled;
  if (draft.roots.join('\n') !== before.roots.join('\n')) change.allowRoots = draft.roots;
  if (draft.agents.join('\n') !== before.agents.join('\n')) change.agents = draft.agents;
  const kinds = KINDS.filter(({ kind }) => draft.allowed[kind] !== before.allowed[kind]);
  if (kinds.length > 0)
    change.peers = [
      { id: pc.id, ...Object.fromEntries(kinds.map(({ kind }) => [kind, draft.allowed[kind]])) },
    ];
  // Jobs that are allowed one PC need the switch for all of them.
  if (change.peers !== undefined && draft.allowed.jobs && !network.policy.jobsEnabled)
    change.jobsEnabled = true;
  return change;
}

/** What the owner has chosen for the whole team, before it is saved. */
export interface TeamDraft {
  enabled: boolean;
  decisions: boolean;
  /** What this PC says to one other, only that one can read. */
  seal: boolean;
}

export const teamDraftOf = (network: Network): TeamDraft => ({
  enabled: network.enabled,
  decisions: network.team?.decisions ?? false,
  seal: network.team?.seal ?? false,
});

/** The draft as a change for the team of that name: only what is another now. */
export function teamChangeOf(network: Network, team: string, draft: TeamDraft): PolicyChange {
  const before = teamDraftOf(network);
  const change: PolicyChange = {};
  if (draft.enabled !== before.enabled) change.enabled = draft.enabled;
  if (draft.decisions !== before.decisions) change.team = { team, decisions: draft.decisions };
  if (draft.seal !== before.seal) change.team = { ...change.team, team, seal: draft.seal };
  return change;
}

export const changesNothing = (change: PolicyChange) => Object.keys(change).length === 0;

/** A list that was edited, after another edit of what it began with: both count. */
export function rebasedList(mine: string[], from: readonly string[], to: readonly string[]): string[] {
  const kept = to.filter((item) => mine.includes(item) || !from.includes(item));
  return [...kept, ...mine.filter((item) => !from.includes(item) && !to.includes(item))];
}

/** A draft that began with one policy, after somebody else changed that: what was not touched follows. */
export function rebased(draft: Draft, from: Draft, to: Draft): Draft {
  const kinds = KINDS.map(({ kind }) => [
    kind,
    draft.allowed[kind] === from.allowed[kind] ? to.allowed[kind] : draft.allowed[kind],
  ]);
  return {
    enabled: draft.enabled === from.enabled ? to.enabled : draft.enabled,
    allowed: Object.fromEntries(kinds) as PCAllowed,
    roots: rebasedList(draft.roots, from.roots, to.roots),
    agents: rebasedList(draft.agents, from.agents, to.agents),
  };
}

/** The other PCs that folders and agents count for as well. */
export const othersWithJobs = (network: Network, pc: PairedPC) =>
  network.peers.filter((other) => other.id !== pc.id && other.allowed.jobs).map((other) => other.name);

/** The addresses that can be chosen: those that this PC has, and those that the file names. */
export const addresses = ({ policy }: Network) => [...new Set([...policy.own, ...policy.listen])];

/** An address in words: all of them, or one that is not there now. */
export function addressWords(address: string, own: readonly string[]): string {
  if (address === '0.0.0.0' || address === '::') return 'all addresses, also in networks that you join later';
  if (isLocal(address) || address === '::1') return 'this PC only';
  return own.includes(address) ? '' : 'not an address of this PC now';
}

/** A code as it is typed, for people to read back: "7k3mqx9t" is "7K3M-QX9T". */
export function codeShown(typed: string): string {
  const clean = typed
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, '')
    .slice(0, 8);
  return clean.length > 4 ? `${clean.slice(0, 4)}-${clean.slice(4)}` : clean;
}

/** What to do about a PC that has the name of this one, or of another pair; '' where none has. */
export function sameName(network: Pick<Network, 'name' | 'peers'>, pc: PCName): string {
  const isSame = (name: string) => name.toLowerCase() === pc.name.toLowerCase();
  if (isSame(network.name))
    return 'It has the name of this PC, too. Give this PC another name under “Where it can be reached…”.';
  return network.peers.some((other) => other.id !== pc.id && isSame(other.name))
    ? 'Another PC has this name, too. Give one of them another name there.'
    : '';
}
