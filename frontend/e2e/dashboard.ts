// The dashboard under test and the tests' way into it. Nothing happens in it
// but what a test does: its scripted sessions have talked before it opens.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Child, type Decision, type Peer, type State } from '../src/lib/api';
import {
  expect,
  test as base,
  type APIResponse,
  type BrowserContext,
  type Page,
  type Route,
} from '@playwright/test';

type Storage = Awaited<ReturnType<BrowserContext['storageState']>>;

export interface Dashboard {
  origin: string;
  storage: Storage;
}

/** The program under test. */
export const BINARY =
  process.env['BRIDGE_BIN'] ?? fileURLToPath(new URL('../../bin/bridge', import.meta.url));

/** How often the scripted sessions go through their script: more than fits on a screen. */
const ROUNDS = '5';

const LAUNCH = /https?:\/\/[^\s/]+\/launch\?\S+/;

/** Starts a command and waits until it prints a launch link. */
export async function start(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = LAUNCH.exec(line)?.[0];
    if (url === undefined) continue;
    child.stdout.resume(); // whatever it prints from here on must not fill the pipe
    return { url, child };
  }
  throw new Error(`${command} ended without a launch link`);
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Gives the launch link of a dashboard with sessions in it, for as long as `use` runs. */
async function withLaunchURL(use: (url: string) => Promise<void>): Promise<void> {
  const running = process.env['BRIDGE_URL'];
  if (running !== undefined) return use(running);
  const { url, child } = await start(BINARY, ['demo', '--no-open', '--port', '0', '--rounds', ROUNDS]);
  try {
    await use(url);
  } finally {
    await stop(child);
  }
}

/** Waits until there are sessions, messages and a decision that was changed, all of them searched. */
async function waitForLife(context: BrowserContext, origin: string): Promise<void> {
  const ask = async <T>(path: string) => (await (await context.request.get(origin + path)).json()) as T;
  await expect(async () => {
    const { peers, messages, storage } = await ask<State>('/api/state');
    const { decisions } = await ask<{ decisions: Decision[] }>('/api/decisions');
    const { behind } = await ask<{ behind: number }>('/api/search?q=error');
    expect(Math.min(peers.length, messages.length)).toBeGreaterThan(0);
    expect(decisions.some((d) => d.supersedes !== null)).toBe(true);
    expect(storage.ok).not.toBeNull();
    expect(behind).toBe(0);
  }).toPass({ timeout: 120_000 });
}

export const test = base.extend<object, { dashboard: Dashboard }>({
  dashboard: [
    async ({ browser }, use) => {
      await withLaunchURL(async (url) => {
        const context = await browser.newContext();
        const page = await context.newPage();
        await page.goto(url);
        await page.waitForURL((at) => !at.pathname.startsWith('/launch'));
        await waitForLife(context, new URL(url).origin);
        const storage = await context.storageState();
        await context.close();
        await use({ origin: new URL(url).origin, storage });
      });
    },
    { scope: 'worker', timeout: 180_000 },
  ],
  baseURL: async ({ dashboard }, use) => use(dashboard.origin),
  storageState: async ({ dashboard }, use) => use(dashboard.storage),
});

let opened = 0;

/** Loads a place of the page and waits until it shows what is known. */
export async function open(page: Page, place: string): Promise<void> {
  const origin = page.url().startsWith('http') ? new URL(page.url()).origin : '';
  await page.goto(`${origin}/?${++opened}#/${place}`); // to the same address it would only go, not load
  await page.locator('main[aria-busy=false]').getByRole('heading', { level: 1 }).waitFor();
}

/** Waits until a place shows what it asks for after the state, for whoever looks at all of it. */
export async function settled(page: Page, place: string): Promise<void> {
  const main = page.locator('main');
  switch (place) {
    case 'session':
      await main.locator('[data-message]').first().waitFor();
      break;
    case 'child':
      await main.locator('[data-message]').or(main.getByText('Nothing was written about')).first().waitFor();
      break;
    case 'decisions':
      await main.locator('li').first().waitFor();
      break;
    case 'topic':
      await main.locator('ol > li').first().waitFor();
      break;
    case 'search':
      await page.getByRole('searchbox').fill('error');
      await main.locator('mark').first().waitFor();
      break;
    case 'storage':
      await page.getByRole('button', { name: 'Check now' }).waitFor();
      await main.getByText(/No restore was proven|Restore proven/).waitFor();
      await page.getByRole('searchbox').fill('e');
      await main.locator('mark').first().waitFor();
      break;
    case 'network':
      await page.getByRole('button', { name: 'Pair a PC' }).waitFor();
      break;
    case 'settings':
      await main.getByRole('listitem').filter({ hasText: 'antigravity' }).waitFor();
      await page.getByRole('textbox', { name: 'Dashboard port' }).waitFor();
      break;
  }
}

/** What the dashboard of an origin, or of the test, knows now. It answers 503 where it is to be asked again. */
export async function stateOf(page: Page, origin = ''): Promise<State> {
  let response = await page.request.get(`${origin}/api/state`);
  const again = async () => (response = await page.request.get(`${origin}/api/state`)).status();
  if (response.status() === 503) await expect.poll(again).not.toBe(503);
  if (!response.ok()) throw new Error(`the state answered ${response.status()}: ${await response.text()}`);
  return (await response.json()) as State;
}

/** The address of the state, whole or as changes. */
export const STATE = /\/api\/state(\?.*)?$/;

/** Fetches the whole state for a test that answers with a changed one; the page will ask for a whole one again. */
export async function wholeState(route: Route): Promise<{ response: APIResponse; state: State }> {
  const [url = ''] = route.request().url().split('?', 1);
  const response = await route.fetch({ url });
  return { response, state: { ...((await response.json()) as State), tag: '' } };
}

/** One live session's name; a dashboard without any cannot be tested. */
export async function someSession(page: Page, index = 0): Promise<string> {
  const { peers } = await stateOf(page);
  const peer = peers[index % peers.length];
  if (peer === undefined) throw new Error('the dashboard under test has no sessions');
  return peer.name;
}

export interface ChildOf {
  peer: Peer;
  child: Child;
}

/** A native child at work of a session of that kind; a real dashboard hears of one by a hook. */
export async function childOf(page: Page, agent: string): Promise<ChildOf> {
  const find = async (): Promise<ChildOf | undefined> => {
    for (const peer of (await stateOf(page)).peers) {
      const child = peer.children.find((c) => c.state === 'busy');
      if (peer.agent === agent && child !== undefined) return { peer, child };
    }
    return undefined;
  };
  if ((await find()) === undefined) await startChild(page, agent);
  await expect.poll(find).toBeDefined();
  return (await find()) as ChildOf;
}

/** Tells Bridge that a session of that kind has started a native child, as the agent's hook does. */
async function startChild(page: Page, agent: string): Promise<void> {
  const { peers, instance } = await stateOf(page);
  const peer = peers.find((p) => p.agent === agent);
  test.skip(peer?.sessionId == null, `no ${agent} session can have a child here`);
  const call = {
    hook_event_name: 'SubagentStart',
    session_id: peer?.sessionId,
    cwd: peer?.cwd,
    agent_id: `child-of-${peer?.name ?? ''}`,
    agent_type: `explore ${peer?.name ?? ''}`,
  };
  const hook = spawn(BINARY, ['hook', agent, 'SubagentStart', '--home', instance.home], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  hook.stdin.end(JSON.stringify(call));
  await once(hook, 'exit');
}

/** The address of a place; "session", "child" and "topic" take the first there is. */
export async function addressOf(page: Page, place: string): Promise<string> {
  if (place === 'session') return `sessions/${await someSession(page)}`;
  if (place === 'child') return addressOfChild(await childOf(page, 'claude'));
  if (place !== 'topic') return place;
  const response = await page.request.get('/api/decisions');
  const { decisions } = (await response.json()) as { decisions: { topic: string }[] };
  return `decisions/${encodeURIComponent(decisions[0]?.topic ?? 'nothing')}`;
}

export const addressOfChild = ({ peer, child }: ChildOf) =>
  `sessions/${encodeURIComponent(peer.name)}/${encodeURIComponent(child.id)}`;

/** Writes to everyone as the owner, past the page. */
export async function tellEveryone(page: Page, body: string): Promise<void> {
  const send = () =>
    page.request.post('/api/messages', { headers: { 'x-bridge': '1' }, data: { to: '*', body } });
  let response = await send();
  // A test that is repeated soon writes more than the owner may in one minute.
  if (response.status() === 429) {
    const again = async () => (response = await send()).status();
    await expect.poll(again, { timeout: 120_000 }).not.toBe(429);
  }
  if (!response.ok()) throw new Error(`sending answered ${response.status()}: ${await response.text()}`);
}

/** A time of day as the page writes it, with its day where that is another one: a test may run over midnight. */
export const CLOCK = /(\d+ [A-Z][a-z]{2} (\d{4} )?)?\d\d:\d\d/;

/** A pattern of words and patterns, one after the other. */
export const pattern = (...parts: RegExp[]) => new RegExp(parts.map((part) => part.source).join(''));

/** A text that no other test uses. */
export const unique = (words: string) => `${words} ${Math.random().toString(36).slice(2, 10)}`;

export { expect };
