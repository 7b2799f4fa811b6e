// Permission prompts of sessions in browser tests: what claude's hooks send, and the setting.

import { spawn, type ChildProcess } from 'node:child_process';
import { expect, type Page } from '@playwright/test';
import { BINARY } from './dashboard';

/** One hook call as claude makes it; `said` is what it wrote when it has ended. */
export function hook(
  home: string,
  event: string,
  more: object,
): { said: Promise<string>; child: ChildProcess } {
  const child = spawn(BINARY, ['hook', 'claude', event], {
    env: { HOME: home, PATH: process.env['PATH'] },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(
    JSON.stringify({ session_id: 's1', hook_event_name: event, cwd: '/home/anna/web', ...more }),
  );
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (said += part));
  return { said: new Promise((told) => child.on('close', () => told(said))), child };
}

/** Sets when prompts come to the page, and goes to where they are. */
export async function choose(page: Page, mode: string) {
  await page.goto(new URL('/#/settings', page.url()).href);
  await page.getByLabel('Answer permission prompts of sessions here').selectOption(mode);
  await expect(page.getByText('Permission prompts come here')).toBeVisible();
  await page.goto(new URL('/#/needs', page.url()).href);
}
