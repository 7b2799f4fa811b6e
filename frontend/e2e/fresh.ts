// A Bridge of its own in an empty user home, with agent CLIs on PATH that only
// know their version: what somebody sees who has just installed it.

import { once } from 'node:events';
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base, type Page } from '@playwright/test';
import { BINARY, start, stop } from './dashboard';

const PROGRAMS = { claude: '2.1.329', opencode: '1.18.33' };

export interface Fresh {
  /** The user's home folder. */
  home: string;
  /** The page, opened by the launch link. */
  page: Page;
  env: Record<string, string>;
  /** Kills the broker, as a crash would. */
  kill: () => Promise<void>;
  /** Starts it again on the same port. */
  again: () => Promise<void>;
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
    const env = { HOME: home, PATH: bin };
    let { url, child } = await start(BINARY, ['serve', '--port', '0'], env);
    const { port } = new URL(url);
    await page.goto(url);
    await page.waitForURL((at) => !at.pathname.startsWith('/launch'));
    const kill = async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    };
    const again = async () => {
      ({ url, child } = await start(BINARY, ['serve', '--port', port], env));
    };
    await use({ home, page, env, kill, again });
    await stop(child);
    await rm(home, { recursive: true });
  },
});
