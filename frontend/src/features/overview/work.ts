// Who is at work now, on what, and since when: sessions and jobs, those that wait for the owner first.

import type { Approval, Message, Need, Peer, Run, Span } from '../../lib/api';
import { projectName } from '../../lib/path';
import { href } from '../../lib/route';
import { byName } from '../../lib/text';
import { isEnded, progressWords, titleOf, WAITS, waitsForWord } from '../runs/runs';
import { doingNow } from '../sessions/list';

/** One session or job at work. */
export interface WorkLine {
  key: string;
  name: string;
  agent: string;
  /** The name of its folder. */
  project: string;
  folder: string;
  /** Where on the page it is. */
  link: string;
  /** The job, null for a session. */
  run: Run | null;
  /** It is held up until the owner answers. */
  waits: boolean;
  /** What it does now, or what it waits for. */
  doing: string;
  /** Since when it works or waits, null where that is not known. */
  since: number | null;
}

export interface WorkFacts {
  peers: Peer[];
  runs: Run[];
  approvals: Approval[];
  needs: Need[];
  /** When each session was at work, by its id. */
  work: Record<string, Span[]>;
  /** What each session said last, by its name. */
  last: Map<string, Message>;
}

/** Returns the oldest need of a session that waits for the owner. */
const needOf = (name: string, needs: Need[]) =>
  needs.filter((need) => need.by === name).toSorted((a, b) => a.since - b.since)[0];

function sessionLine(peer: Peer, facts: WorkFacts): WorkLine | null {
  const need = needOf(peer.name, facts.needs);
  if (need === undefined && peer.state !== 'busy' && !peer.children.some((c) => c.state !== 'done'))
    return null;
  const span = facts.work[peer.id]?.find(({ to }) => to === null);
  return {
    key: `session:${peer.id}`,
    name: peer.name,
    agent: peer.agent,
    project: projectName(peer.cwd),
    folder: peer.cwd,
    link: href({ page: 'session', name: peer.name }),
    run: null,
    waits: need !== undefined,
    doing:
      need === undefined
        ? doingNow(peer, facts.runs, facts.last.get(peer.name))
        : need.title.replace(`${peer.name} `, ''),
    since: need?.since ?? span?.from ?? null,
  };
}

/** What a job waits for, with exactly what it asks. */
const heldUp = (run: Run, asked: Approval | undefined) =>
  WAITS[run.wait?.for ?? 'approval'] + (asked === undefined ? '' : `: ${asked.detail}`);

/** What a job does, or how far it is. */
const doingOf = (run: Run) =>
  [progressWords(run), run.step].filter((words) => words !== '').join(' · ') || 'thinks';

function jobLine(run: Run, { approvals, needs }: WorkFacts): WorkLine | null {
  if (isEnded(run) || run.status === 'queued') return null;
  const asked = approvals.find((approval) => approval.job === run.job && approval.state === 'asked');
  const need = needs.find(({ id }) => id.startsWith(`job-asks:${run.job}:`));
  const waits = asked !== undefined || waitsForWord(run);
  return {
    key: `job:${run.job}`,
    name: titleOf(run),
    agent: run.agent,
    project: projectName(run.workdir),
    folder: run.workdir,
    link: href({ page: 'run', job: run.job, tab: '' }),
    run,
    waits,
    doing: waits || run.status === 'waiting' ? heldUp(run, asked) : doingOf(run),
    since: waits ? (asked?.askedAt ?? need?.since ?? null) : run.startedAt,
  };
}

/**
 * Returns the sessions and jobs at work and those held up: first those that wait for the owner, then
 * those at work, each group by how long, the longest first. Jobs in line are not in it.
 */
export function atWork(facts: WorkFacts): WorkLine[] {
  const lines = [
    ...facts.peers.map((peer) => sessionLine(peer, facts)),
    ...facts.runs.map((run) => jobLine(run, facts)),
  ].filter((line) => line !== null);
  const since = (line: WorkLine) => line.since ?? Infinity;
  return lines.sort(
    (a, b) =>
      Number(b.waits) - Number(a.waits) ||
      (since(a) === since(b) ? 0 : since(a) - since(b)) ||
      byName(a.name, b.name),
  );
}

const HOSTS: Record<string, string> = {
  serve: 'in a terminal',
  background: 'in the background',
  desktop: 'in the desktop app',
  service: 'as a service',
};

/** Returns where the broker runs: "running as a service". */
export const runsWords = (host: string) => `running ${HOSTS[host] ?? ''}`.trimEnd();
