// A Bridge of its own in an empty user home, with agent CLIs on PATH that only
// know their version: what somebody sees who has just installed it.

import { once } from 'node:events';
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base, type Page } from '@playwright/test';
import { BINARY, start, stop } from './dashboard';
import { Session } from './session';

const PROGRAMS = { claude: '2.1.329', opencode: '1.18.33' };

export interface Fresh {
  /** The user's home folder. */
  home: string;
  /** The page, opened by the launch link. */
  page: Page;
  /** Begins a session that ends with the test. */
  begin: (...flags: string[]) => Promise<Session>;
  /** Kills the broker, as a crash would. */
  kill: () => Promise<void>;
  /** Starts it again on the same port. */
  again: () => Promise<void>;
}

/** A port that no system gives away by itself: it is still free for the next broker. */
async function ownPort(): Promise<string> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer();
    const free = await new Promise<boolean>((told) => {
      server.once('error', () => told(false)).listen(port, '127.0.0.1', () => told(true));
    });
    await new Promise((closed) => server.close(closed));
    if (free) return String(port);
  }
}

export const test = base.extend<{ fresh: Fresh }>({
  fresh: async ({ page }, use) => {
    const home = await mkdtemp(join(tmpdir(), 'bridge-e2e-'));
    const bin = join(home, 'bin');
    await mkdir(bin);
    for (const [name, version] of Object.entries(PROGRAMS)) {
      await writeFile(join(bin, name), `#!/bin/sh\n[ "$1" = --version ] && echo ${version}\nexit 0\n`, {
        mode: 0o755,
      });
    }
    // The broker finds agents as a new terminal of the user's does.
    await writeFile(join(home, '.profile'), `export PATH='${bin}'\n`);
    const env = { HOME: home, PATH: bin, SHELL: '/bin/sh' };
    const port = await ownPort();
    const serve = () => start(BINARY, ['serve', '--port', port], env);
    let { url, child } = await serve();
    await page.goto(url);
    await page.waitForURL((at) => !at.pathname.startsWith('/launch'));
    const kill = async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    };
    const again = async () => {
      ({ url, child } = await serve());
    };
    const sessions: Session[] = [];
    const begin = async (...flags: string[]) => {
      const session = await Session.begin(flags, env);
      sessions.push(session);
      return session;
    };
    await use({ home, page, begin, kill, again });
    // Sessions end first: one that loses its broker starts another, which writes into the home.
    for (const session of sessions) await session.end();
    await stop(child);
    await rm(home, { recursive: true });
  },
});
