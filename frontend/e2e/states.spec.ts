import type { Page } from '@playwright/test';
import type { Need, State } from '../src/lib/api';
import { CLOCK, expect, open, pattern, someSession, test, STATE, wholeState } from './dashboard';

// A page that is closing may still be asking.
test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

/** Lets the page see a changed state, as this dashboard cannot be brought into it. */
async function show(page: Page, change: (state: State) => Partial<State>): Promise<void> {
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    await route.fulfill({ response, json: { ...state, ...change(state) } });
  });
}

/** Mail that a session has left unread for so many ms. */
function waitsFor(ms: number, name: string): Need {
  return {
    id: `mail:${name}:m-1`,
    sort: 'mail',
    title: `${name} has not read 1 message`,
    detail: 'It is idle; give it a turn, and it reads.',
    since: Date.now() - ms,
    until: null,
    place: '/src/web',
    link: `#/sessions/${name}`,
    urgency: 'info',
    by: '',
    news: true,
  };
}

const lookAgain = (page: Page) => page.evaluate(() => window.dispatchEvent(new Event('focus')));

test('DSK-06 nothing needs you is one calm line', async ({ page }) => {
  await show(page, () => ({ messages: [], needs: [] }));
  await open(page, 'needs');
  await expect(page.locator('main')).toContainText('Nothing needs you.');
});

test('DSK-06 mail that waits too long needs the owner, can be put away and taken back', async ({ page }) => {
  const name = await someSession(page);
  let away = false;
  await show(page, (state) => ({
    messages: state.messages.slice(0, 1),
    needs: away ? [] : [waitsFor(3_600_000, name)],
  }));
  await page.route('**/api/needs/*', async (route) => {
    ({ away } = route.request().postDataJSON() as { away: boolean });
    await route.fulfill({ json: { needs: away ? [] : [waitsFor(3_600_000, name)] } });
  });
  await open(page, 'needs');
  const title = `${name} has not read 1 message`;
  await expect(page.locator('main li')).toContainText(title);
  await expect(page.locator('main li')).toContainText('1 h ago');
  await expect(page).toHaveTitle('Needs you · Bridge'); // news is not counted (PGE-02)
  await page.getByRole('button', { name: /^Dismiss/ }).click();
  await expect(page.locator('main')).toContainText('Nothing needs you.');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.locator('main li')).toContainText(title);
});

test('DSK-06 the overview says first what needs the owner', async ({ page }) => {
  await show(page, () => ({ messages: [], needs: [] }));
  await open(page, 'overview');
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  const name = await someSession(page);
  await show(page, (state) => ({
    messages: state.messages.slice(0, 1).map((m) => ({ ...m, created_at: Date.now() - 7_200_000 })),
    needs: [waitsFor(7_200_000, name)],
  }));
  await open(page, 'overview');
  const first = page.locator('main section').first();
  await expect(first.getByRole('heading', { name: 'Needs you' })).toBeVisible();
  await expect(first).toContainText(`${name} has not read 1 message`);
  await expect(page.getByText('Nothing in the last hour; before that:')).toBeVisible();
});

test('DSK-06 a name that nobody had is told, and offers nobody to write to', async ({ page }) => {
  await open(page, 'sessions/nobody-at-all');
  await expect(page.locator('main')).toContainText('no session of that name was ever seen');
  await expect(page.getByLabel('Message to nobody-at-all')).toHaveCount(0);
});

test('DSK-06 loading is said after a moment only', async ({ page }) => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route(STATE, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto('/#/overview');
  await expect(page.getByText('Loading…').first()).toBeVisible();
  const bars = page.locator('main .bars').first();
  await expect(bars.locator('i').first()).toBeInViewport(); // where the rows will be (PGE-12)
  const height = await bars.evaluate((e) => e.getBoundingClientRect().height);
  expect(height).toBeGreaterThan(80);
  release();
  await expect(page.getByText('Loading…')).toHaveCount(0);
});

test('DSK-06 offline says since when and keeps the last data greyed', async ({ page }) => {
  const name = await someSession(page);
  await open(page, 'overview');
  const row = page.locator(`main [data-session="${name}"]`);
  await expect(row).toBeVisible();
  await page.route('**/api/**', (route) => route.abort());
  await lookAgain(page);
  await expect(page.getByText(pattern(/Bridge does not answer since /, CLOCK))).toBeVisible();
  await expect(page).toHaveTitle(/^⚠ /);
  await expect(row).toBeVisible();
  const grey = await row.evaluate((e) => getComputedStyle(e.closest('.stale') ?? e).filter);
  expect(grey).toContain('grayscale');
  await expect(page.getByRole('button', { name: 'Try now' })).toBeVisible();
  await page.unroute('**/api/**');
  await expect(page.getByText('Bridge does not answer')).toHaveCount(0);
  await expect(page).not.toHaveTitle(/⚠/);
});

test('DSK-06 a refusal that passes is told in its own words, and the page goes on by itself', async ({
  page,
}) => {
  await open(page, 'overview');
  const error = 'more than one program has this connection open: try again';
  await page.route(STATE, (route) => route.fulfill({ status: 503, json: { error } }));
  await lookAgain(page);
  const banner = page.getByRole('status').filter({ hasText: 'Bridge cannot show its state since' });
  await expect(banner).toContainText(error);
  await expect(page.getByText('Refused.')).toHaveCount(0);
  await page.unroute(STATE);
  await expect(banner).toHaveCount(0);
});

test('DSK-06 a broker that is down is told apart, also on Needs you', async ({ page }) => {
  const offline: Need = {
    ...waitsFor(1000, 'nobody'),
    id: 'offline',
    sort: 'offline',
    title: 'The broker is offline',
  };
  await show(page, () => ({ broker: { state: 'offline', host: 'background', pid: null }, needs: [offline] }));
  await open(page, 'needs');
  await expect(page.getByText(pattern(/The broker is offline since /, CLOCK))).toBeVisible();
  await expect(page.locator('main li').first()).toContainText('The broker is offline');
});

test('DSK-06 refused says to open the launch link again', async ({ page }) => {
  await open(page, 'overview');
  await page.context().clearCookies();
  await lookAgain(page);
  await expect(page.getByText('Open its launch link again')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Send' })).toBeDisabled();
});

test('DSK-06 the theme follows the system until chosen, and the choice stays', async ({ page }) => {
  const root = page.locator('html');
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(page, 'settings');
  await expect(root).toHaveAttribute('data-theme', 'dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await expect(root).toHaveAttribute('data-theme', 'light');
  await page.getByRole('radio', { name: 'Dark' }).check();
  await expect(root).toHaveAttribute('data-theme', 'dark');
  await page.reload();
  await expect(root).toHaveAttribute('data-theme', 'dark');
});
