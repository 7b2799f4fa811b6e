import { expect, type Page } from '@playwright/test';
import type { Need } from '../src/lib/api';
import { open, STATE, wholeState } from './dashboard';
import { test } from './fresh';
import { shot } from './shot';

interface Shown {
  title: string;
  body: string;
  tag: string;
}

/** Records the notices that the page shows, and lets the browser answer `granted` when it is asked. */
async function record(page: Page, before: NotificationPermission): Promise<() => Promise<Shown[]>> {
  await page.addInitScript((permission) => {
    const shown: unknown[] = [];
    class Recorded {
      static permission = permission;
      static requestPermission() {
        Recorded.permission = 'granted';
        return Promise.resolve(Recorded.permission);
      }
      onclick: (() => void) | null = null;
      constructor(title: string, { body, tag }: { body: string; tag: string }) {
        shown.push({ title, body, tag });
        Object.assign(window, { clickNotice: () => this.onclick?.() });
      }
      close() {
        return undefined;
      }
    }
    Object.assign(window, { Notification: Recorded, shownNotices: shown });
    Object.defineProperty(document, 'hasFocus', { value: () => false });
  }, before);
  return () => page.evaluate(() => (window as unknown as { shownNotices: Shown[] }).shownNotices);
}

function asks(id: string): Need {
  return {
    id: `question:${id}`,
    sort: 'question',
    title: 'web asks: which secret plan?',
    detail: 'which secret plan?',
    since: Date.now(),
    until: null,
    place: '',
    link: '#/needs',
    urgency: 'now',
    by: 'web',
    news: false,
  };
}

const lookAgain = (page: Page) => page.evaluate(() => window.dispatchEvent(new Event('focus')));
const icon = (page: Page) => page.locator('link[rel=icon]').getAttribute('href');

test.afterEach(({ fresh }) => fresh.page.unrouteAll({ behavior: 'ignoreErrors' }));

test('PGE-14 a page in the background shows a notice and a badge, behind the switch and the quiet hours', async ({
  fresh,
}) => {
  const { page } = fresh;
  const shown = await record(page, 'default');
  let needs: Need[] = [];
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    await route.fulfill({ response, json: { ...state, needs } });
  });
  await open(page, 'settings');
  await page.getByRole('button', { name: 'Show them in this browser' }).click();
  await expect(page.locator('main')).toContainText('This browser shows them while a page of Bridge is open');
  await shot(page, 'settings-notices');
  expect(await icon(page)).toBe('/assets/bridge.svg');

  needs = [asks('a')];
  await lookAgain(page);
  await expect.poll(shown).toHaveLength(1);
  expect(await shown()).toEqual([
    { title: 'A session has a question', body: 'Open Bridge to answer it.', tag: 'bridge-question' },
  ]);
  await expect(page).toHaveTitle(/^\(1\) /);
  expect(await icon(page)).toBe('/assets/bridge-needs.svg');
  const badge = await page.request.get(new URL('/assets/bridge-needs.svg', page.url()).href);
  expect(badge.headers()['content-type']).toContain('image/svg+xml');

  await page.evaluate(() => (window as unknown as { clickNotice: () => void }).clickNotice());
  await expect(page).toHaveURL(/#\/needs$/);

  // The switch of the desktop notices holds for the browser, too.
  await page.goto(page.url().replace(/#.*/, '#/settings'));
  await page.getByRole('checkbox', { name: 'Notifications' }).uncheck();
  await expect(page.locator('main')).toContainText('Switch notifications on first.');
  needs = [asks('a'), asks('b')];
  await lookAgain(page);
  await expect(page).toHaveTitle(/^\(2\) /);
  expect(await shown()).toHaveLength(1);

  // Quiet hours hold a notice back; afterwards what is still open is shown.
  const box = page.getByRole('checkbox', { name: 'Notifications' });
  await box.check();
  await expect.poll(shown).toHaveLength(2);
  await page.getByLabel('Quiet from').fill('00:00');
  await page.getByLabel('Quiet until').fill('23:59');
  await page.getByRole('button', { name: 'Save hours' }).click();
  await expect(page.locator('main')).toContainText('It is quiet from 00:00 to 23:59.');
  needs = [...needs, asks('c')];
  await lookAgain(page);
  await expect(page).toHaveTitle(/^\(3\) /);
  expect(await shown()).toHaveLength(2);
  await page.getByRole('button', { name: 'None' }).click();
  await expect.poll(shown).toHaveLength(3);
});

test('PGE-14 a browser that blocks notices says what to do', async ({ fresh }) => {
  const { page } = fresh;
  await record(page, 'denied');
  await open(page, 'settings');
  await expect(page.locator('main')).toContainText("Allow them in the browser's settings for this address.");
});
