// Two PCs, which are two homes with a broker each, that pair over loopback.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, type Page } from '@playwright/test';
import { BINARY, open, start, stop } from './dashboard';
import { test as base, type Fresh } from './fresh';
import { Session } from './session';
import { Way } from './way';

const CODEX = fileURLToPath(new URL('codex.mjs', import.meta.url));

/** Another PC: a home of its own, whose broker listens on loopback as well. */
export interface PC {
  home: string;
  /** Runs bridge there to its end. */
  run: (args: string[], input?: string) => Promise<{ code: number | null; out: string; err: string }>;
  /** Begins a session there that ends with the test. */
  begin: (...flags: string[]) => Promise<Session>;
  /** What is done when the test ends. */
  ends: (() => void)[];
  /** Has its broker stand still, as a PC that is asleep, and go on. */
  sleep: () => void;
  wake: () => void;
  /** Starts `bridge pair --json` there. */
  pair: () => Promise<{ address: string; code: string; process: ChildProcess }>;
}

export const settings = (name: string, port = 0) =>
  `{\n  "theirs": {"deep": [1]},\n  "network": {"name": "${name}", "port": ${port}, "mine": "kept"}\n}\n`;

/** The page is desk's; laptop is the other one. */
export const test = base.extend<{ laptop: PC }>({
  laptop: async ({ fresh }, use) => {
    await writeFile(config(fresh), settings('desk'));
    const home = await mkdtemp(join(tmpdir(), 'bridge-e2e-pc-'));
    await mkdir(join(home, '.bridge'), { mode: 0o700 });
    await writeFile(join(home, '.bridge', 'config.json'), settings('laptop'));
    const env = { HOME: home, PATH: process.env['PATH'], BRIDGE_CODEX_BIN: CODEX };
    const { child } = await start(BINARY, ['serve', '--port', '0'], env);
    const begun: ChildProcess[] = [];
    const sessions: Session[] = [];
    const ends: (() => void)[] = [];
    await use({
      home,
      ends,
      sleep: () => child.kill('SIGSTOP'),
      wake: () => child.kill('SIGCONT'),
      begin: async (...flags) => {
        const session = await Session.begin(flags, env);
        sessions.push(session);
        return session;
      },
      run: async (args, input = '') => {
        const process = spawn(BINARY, args, { env, stdio: 'pipe' });
        let out = '';
        let err = '';
        process.stdout.on('data', (text) => (out += text));
        process.stderr.on('data', (text) => (err += text));
        process.stdin.end(input);
        const [code] = (await once(process, 'close')) as [number | null];
        return { code, out, err };
      },
      pair: async () => {
        const process = spawn(BINARY, ['pair', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
        begun.push(process);
        let text = '';
        for await (const line of createInterface({ input: process.stdout })) {
          text += line;
          if (line === '}') break;
        }
        return { ...(JSON.parse(text) as { address: string; code: string }), process };
      },
    });
    child.kill('SIGCONT');
    for (const session of sessions) await session.end();
    for (const process of begun) await stop(process);
    await stop(child);
    for (const end of ends) end();
    await rm(home, { recursive: true, maxRetries: 20 });
  },
});

export const config = (fresh: Fresh) => join(fresh.home, '.bridge', 'config.json');

/** Shows a code on the page. */
export async function invite(page: Page): Promise<{ address: string; code: string }> {
  await open(page, 'network');
  await page.getByRole('button', { name: 'Pair a PC' }).click();
  const card = page.getByRole('region', { name: 'Pair another PC with this one' });
  const code = await card.locator('.code').innerText();
  const address = await card.locator('.address').first().innerText();
  expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$/);
  return { address, code };
}

/** Pairs both, by the code that the page shows; the laptop comes by the way that it is given. */
export async function pair(
  page: Page,
  laptop: PC,
  by = (address: string) => Promise.resolve(address),
): Promise<void> {
  const { address, code } = await invite(page);
  expect((await laptop.run(['link', await by(address), '--code-stdin'], code)).code).toBe(0);
  await page.getByRole('region', { name: 'Paired with laptop' }).waitFor();
}

/** Pairs both over a way on which what the laptop says can be held up. It ends with the test. */
export async function pairByWay(page: Page, laptop: PC): Promise<Way> {
  let way: Way | undefined;
  await pair(page, laptop, async (address) => {
    way = await Way.to(address);
    laptop.ends.push(() => way?.end());
    return way.address;
  });
  if (way === undefined) throw new Error('nobody came that way');
  return way;
}
