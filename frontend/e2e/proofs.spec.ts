import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { open, stateOf } from './dashboard';
import { test, type Fresh } from './fresh';
import { looksRight } from './looks';
import { shot } from './shot';

const WIDTHS = [360, 640, 800, 1280, 1440, 1920];
const HOUR = 3_600_000;

/** What is stored of one version of an agent. */
interface Stored {
  kind: string;
  version: string;
  at: number;
  problem?: string;
  routes: { route: string; state: string; since?: string; worked?: string }[];
}

const broken = (): Stored => ({
  kind: 'claude',
  version: '2.1.329',
  at: Date.now() - 2 * HOUR,
  routes: [
    { route: 'connects', state: 'works' },
    { route: 'mail-at-tool', state: 'broken', since: '2.1.329' },
    { route: 'wake', state: 'broken', since: '2.1.320', worked: '2.1.319' },
  ],
});

/** Starts the broker with what was found out before, as after a restart of the PC. */
async function startWith({ page, home, kill, again }: Fresh, ...proofs: Stored[]): Promise<void> {
  await kill();
  await writeFile(join(home, '.bridge', 'proofs.json'), JSON.stringify({ version: 1, proofs }));
  await again();
  await expect(async () => {
    expect((await stateOf(page, new URL(page.url()).origin)).broker.state).toBe('live');
  }).toPass();
}

const rowOf = ({ page }: Fresh, kind: string) =>
  page.getByRole('listitem').filter({ has: page.locator('strong', { hasText: kind }) });

test('CAN-02 the row of an agent says which version Bridge tried, and what came', async ({ fresh }) => {
  const { page } = fresh;
  await open(page, 'settings');
  await expect(rowOf(fresh, 'claude')).toContainText('2.1.329');
  await expect(page.getByText('Bridge tried')).toHaveCount(0);
  await startWith(
    fresh,
    broken(),
    {
      kind: 'codex',
      version: '0.148.0',
      at: Date.now() - HOUR,
      problem: 'this system permits no network namespace',
      routes: [],
    },
    {
      kind: 'opencode',
      version: '1.18.33',
      at: Date.now() - 3 * HOUR,
      routes: [{ route: 'connects', state: 'works' }],
    },
  );
  await open(page, 'settings');
  const claude = rowOf(fresh, 'claude');
  await expect(claude).toContainText('Bridge tried version 2.1.329: not all routes work. 2 h ago');
  await expect(claude).toContainText('Wake is broken since 2.1.320: mail waits for the next prompt.');
  await expect(claude).toContainText('Mail at a tool is broken since 2.1.329: mail waits for');
  await expect(rowOf(fresh, 'codex')).toContainText(
    'Bridge could not try version 0.148.0: this system permits no network namespace. 1 h ago',
  );
  await expect(rowOf(fresh, 'opencode')).toContainText(
    'Bridge tried version 1.18.33: all routes work. 3 h ago',
  );
  await looksRight(page, 'proofs-settings', WIDTHS);
});

test('CAN-02 broken routes need the owner once, and lead to the agents', async ({ fresh }) => {
  const { page } = fresh;
  await startWith(fresh, broken());
  await open(page, 'needs');
  const news = page.getByRole('region', { name: 'Good to know' });
  const row = news.getByRole('listitem').filter({ hasText: 'claude 2.1.329: 2 routes are broken' });
  await expect(row).toContainText('Wake is broken since 2.1.320: mail waits for the next prompt.');
  await looksRight(page, 'proofs-needs', WIDTHS);
  await expect(row.getByRole('link')).toHaveAttribute('href', '#/settings');
  await row.getByRole('button', { name: /^Dismiss/ }).click();
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  await fresh.kill();
  await fresh.again();
  await open(page, 'needs');
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
});

test('CAN-02 the owner decides whether Bridge tries new versions', async ({ fresh }) => {
  const { page, home } = fresh;
  await open(page, 'settings');
  const tries = page.getByRole('checkbox', { name: 'Try new versions of agents' });
  await expect(tries).toBeChecked();
  await tries.scrollIntoViewIfNeeded();
  await shot(page, 'proofs-switch');
  await tries.uncheck();
  await expect(page.getByText('Bridge does not try new versions of agents.')).toBeVisible();
  const kept = async () =>
    JSON.parse(await readFile(join(home, '.bridge', 'config.json'), 'utf8')) as { prove: string };
  expect((await kept()).prove).toBe('off');
  await page.reload();
  await expect(tries).not.toBeChecked();
  await tries.check();
  await expect(page.getByText('Bridge tries new versions of agents.')).toBeVisible();
  expect((await kept()).prove).toBe('auto');
});
