// A full Bridge, told to the page in place of the server: 56 sessions, 50 jobs, 2,000
// messages, all of the last hour.

import type { Page } from '@playwright/test';
import type { Activity, ActivityMark, Approval, Peer, Run } from '../src/lib/api';
import { STATE, wholeState } from './dashboard';

export const SESSIONS = 56;
export const JOBS = 50;
export const MESSAGES = 2000;

const KINDS = ['claude', 'codex', 'opencode', 'antigravity'];
const PROJECTS = ['shop', 'billing', 'search', 'mobile', 'docs', 'infra', 'reports'];
const MINUTE = 60_000;

const kind = (i: number) => KINDS[i % KINDS.length] ?? 'claude';
const project = (i: number) => PROJECTS[i % PROJECTS.length] ?? 'shop';
export const sessionName = (i: number) => `${kind(i)}-${project(i)}-${i}`;

/** At work: each fourth; the last 28 did nothing in the last hour. */
const isBusy = (i: number) => i < SESSIONS / 2 && i % 4 === 0;

function peer(like: Peer, i: number, now: number): Peer {
  return {
    ...like,
    id: `peer-${i}`,
    name: sessionName(i),
    agent: kind(i),
    cwd: `/home/anna/src/${project(i)}`,
    state: isBusy(i) ? 'busy' : 'idle',
    sessionId: `session-${i}`,
    since: now - (i + 1) * 7 * MINUTE,
    children: i % 9 === 0 ? [{ id: `child-${i}`, title: 'look through the tests', state: 'busy' }] : [],
    unread: i % 11 === 0 ? 2 : 0,
  };
}

function run(i: number, now: number): Run {
  const done = i >= 10;
  return {
    run: `job-${i}`,
    job: `job-${i}`,
    by: sessionName(i % 10),
    agent: kind(i + 1),
    called: kind(i + 1),
    title: `Job ${i}: bring the tests of ${project(i)} up to date`,
    status: done ? 'finished' : 'running',
    wait: null,
    ended: done ? 'answer' : '',
    model: '',
    effort: '',
    access: 'edit',
    layer: 'own',
    progress: { percent: done ? 100 : i * 10, etaMinutes: null, note: '' },
    step: done ? '' : 'go test ./...',
    workdir: `/home/anna/src/${project(i)}`,
    branch: '',
    session: `s-${i}`,
    tokens: 1000 * i,
    costUsd: i / 10,
    startedAt: now - (i + 1) * MINUTE,
    endedAt: done ? now - i * 0.6 * MINUTE : null,
    worktree: null,
  };
}

function said(i: number, now: number): ActivityMark {
  const at = now - Math.floor((i * 58 * MINUTE) / MESSAGES) - 5000;
  const from = i % (SESSIONS / 2);
  const to = (i * 7 + 3) % (SESSIONS / 2);
  const waits = i < 12;
  return {
    id: `m-${i}`,
    from: sessionName(from),
    agent: kind(from),
    to: sessionName(to),
    kind: i % 200 === 0 ? 'decision' : 'message',
    at,
    words: `Message ${i}: the order endpoint answers 409 when the cart changed meanwhile.`,
    ways: [
      {
        name: sessionName(to),
        stage: waits ? 'durable' : 'consumed',
        woken: i % 5 === 0 ? at + 1000 : null,
        read: waits ? null : at + 20_000,
      },
    ],
  };
}

function work(now: number): Activity['work'] {
  const all: Activity['work'] = {};
  for (let i = 0; i < SESSIONS / 2; i++) {
    all[`peer-${i}`] = Array.from({ length: 12 }, (_, n) => ({
      from: now - (12 - n) * 5 * MINUTE + i * 1000,
      to: n === 11 && isBusy(i) ? null : now - (12 - n) * 5 * MINUTE + 2 * MINUTE,
    }));
  }
  return all;
}

/** What the page is told from now on. */
export async function full(page: Page): Promise<void> {
  const asked: Approval = {
    id: 'a-1',
    job: 'job-3',
    session: 's-3',
    by: sessionName(3),
    kind: 'command',
    what: 'shell',
    detail: 'npm publish --dry-run',
    cwd: '/home/anna/src/shop',
    why: '',
    state: 'asked',
    askedAt: Date.now() - 4 * MINUTE,
    expiresAt: Date.now() + 6 * MINUTE,
    answeredAt: null,
    answeredBy: '',
    decision: '',
    reason: '',
  };
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    const now = Date.now();
    const [like] = state.peers;
    if (like === undefined) throw new Error('the dashboard under test has no sessions');
    state.peers = Array.from({ length: SESSIONS }, (_, i) => peer(like, i, now));
    state.runs = Array.from({ length: JOBS }, (_, i) => run(i, now));
    state.approvals = [asked];
    state.messages = state.messages.map((m, i) => ({
      ...m,
      from_name: sessionName(i % (SESSIONS / 2)),
      from_agent: kind(i),
      created_at: now - i * MINUTE,
    }));
    await route.fulfill({ response, json: state });
  });
  await page.route('**/api/activity?**', async (route) => {
    const now = Date.now();
    const activity: Activity = {
      since: now - 8 * 60 * MINUTE,
      at: now,
      began: now - 9 * 60 * MINUTE,
      work: work(now),
      messages: Array.from({ length: MESSAGES }, (_, i) => said(i, now)),
      complete: true,
    };
    await route.fulfill({ json: activity });
  });
}
