// A Bridge of its own in which jobs are enabled, with a stand-in for codex that
// does what its prompt says, and a session that gives the jobs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test as base, type Page } from '@playwright/test';
import type { Run, RunStatus } from '../src/lib/api';
import { BINARY, start, stateOf, stop, unique } from './dashboard';
import { Session } from './session';

const CODEX = fileURLToPath(new URL('codex.mjs', import.meta.url));

export interface Spawn {
  title?: string;
  access?: 'read' | 'ask' | 'edit';
  worktree?: boolean;
  cwd?: string;
}

export class Jobs {
  readonly #given: string[] = [];

  constructor(
    readonly page: Page,
    /** A git repository in which the session works. */
    readonly folder: string,
    readonly supervisor: Session,
    readonly env: NodeJS.ProcessEnv,
  ) {}

  /** Gives a job that plays these lines; it has its name at once. */
  async give(lines: string[], { access = 'ask', ...more }: Spawn = {}): Promise<string> {
    const told = await this.supervisor.call('spawn_codex', {
      prompt: lines.join('\n'),
      cwd: this.folder,
      access,
      ...more,
    });
    const { job } = JSON.parse(told) as { job: string };
    this.#given.push(job);
    return job;
  }

  /** A gate for a script: the line that waits at it, and what opens it. */
  gate(): { line: string; open: () => Promise<void> } {
    const file = join(this.folder, '..', unique('gate').replace(' ', '-'));
    return { line: `until ${file}`, open: () => writeFile(file, '') };
  }

  async runs(): Promise<Run[]> {
    return (await stateOf(this.page)).runs;
  }

  /** Waits until the job's log has the text. */
  async writes(job: string, text: string): Promise<void> {
    const log = async () => (await this.page.request.get(`/api/runs/${job}?from=0`)).text();
    await expect.poll(log, { timeout: 30_000 }).toContain(text);
  }

  async reaches(job: string, status: RunStatus): Promise<void> {
    const find = async () => (await this.runs()).find((r) => r.job === job)?.status;
    await expect.poll(find, { timeout: 30_000 }).toBe(status);
  }

  /** Ends what still runs, so that nothing outlives the test. */
  async end(): Promise<void> {
    for (const job of this.#given) {
      const status = (await this.runs()).find((r) => r.job === job)?.status;
      if (status !== undefined && ['queued', 'starting', 'running', 'waiting'].includes(status)) {
        await this.supervisor.call('cancel_subagent', { job });
        await this.reaches(job, 'cancelled');
      }
    }
  }
}

/** Runs git as the owner does. */
export async function git(folder: string, ...args: string[]): Promise<void> {
  const child = spawn('git', ['-c', 'user.name=Test', '-c', 'user.email=test@localhost', ...args], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}`);
}

/** One Bridge for all tests of a file, and a page of it for each. */
export const test = base.extend<
  { jobs: Jobs },
  { bridge: { url: string; folder: string; env: NodeJS.ProcessEnv } }
>({
  bridge: [
    async ({}, use) => {
      const home = await mkdtemp(join(tmpdir(), 'bridge-jobs-'));
      const folder = join(home, 'project');
      await mkdir(join(home, '.bridge'), { mode: 0o700 });
      await mkdir(folder);
      await writeFile(join(home, '.bridge', 'config.json'), '{"jobs":{"enabled":true}}', { mode: 0o600 });
      await writeFile(join(folder, 'parser.txt'), 'one\ntwo\nthree\n');
      await git(folder, 'init', '-q', '-b', 'main');
      await git(folder, 'add', '.');
      await git(folder, 'commit', '-q', '-m', 'first');
      const env = { HOME: home, PATH: process.env['PATH'], BRIDGE_CODEX_BIN: CODEX };
      const { url, child } = await start(BINARY, ['serve', '--port', '0'], env);
      await use({ url, folder, env });
      await stop(child);
      await rm(home, { recursive: true });
    },
    { scope: 'worker', timeout: 60_000 },
  ],
  baseURL: async ({ bridge }, use) => use(new URL(bridge.url).origin),
  jobs: async ({ bridge, page, baseURL }, use) => {
    const link = spawn(BINARY, ['url'], { env: bridge.env, stdio: ['ignore', 'pipe', 'inherit'] });
    let url = '';
    for await (const part of link.stdout.setEncoding('utf8')) url += part as string;
    await page.goto(url.trim());
    await page.waitForURL((at) => !at.pathname.startsWith('/launch'));
    expect(new URL(page.url()).origin).toBe(baseURL);
    const flags = [
      '--agent',
      'claude',
      '--name',
      'claude-api',
      '--session',
      'claude-api',
      '--cwd',
      bridge.folder,
    ];
    const supervisor = await Session.begin(flags, bridge.env);
    const jobs = new Jobs(page, bridge.folder, supervisor, bridge.env);
    await use(jobs);
    await jobs.end();
    await supervisor.end();
  },
});

export { expect };
