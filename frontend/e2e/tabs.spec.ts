// Many pages of one browser: it opens six connections to a host at most.

import type { BrowserContext, Page } from '@playwright/test';
import { expect, open, tellEveryone, test, unique } from './dashboard';
import { test as alone } from './fresh';

const TABS = 10;
/** How many streams a dashboard serves at a time: maxStreams of backend/doors/dashboard/events.go. */
const SERVED = 32;

/** Counts the event streams that the pages of a context have open. */
function streamsOf(context: BrowserContext): () => number {
  const streams = new Map<unknown, Page>();
  const isStream = (url: string) => new URL(url).pathname === '/api/events';
  context.on('request', (request) => {
    if (isStream(request.url())) streams.set(request, request.frame().page());
  });
  context.on('requestfinished', (request) => streams.delete(request));
  context.on('requestfailed', (request) => streams.delete(request));
  return () => [...streams.values()].filter((page) => !page.isClosed()).length;
}

/** Whether the dashboard has so few streams open that all but `few` of its places are free. */
async function hasOpenAtMost(few: number, page: Page): Promise<boolean> {
  const cookies = await page.context().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  const end = new AbortController();
  const { origin } = new URL(page.url());
  try {
    const answers = await Promise.all(
      Array.from({ length: SERVED - few }, () =>
        fetch(`${origin}/api/events`, { headers: { cookie }, signal: end.signal }),
      ),
    );
    return answers.every(({ status }) => status === 200);
  } finally {
    end.abort();
  }
}

/** Sees a message of the owner's appear on each page. */
async function expectLive(pages: Page[]): Promise<void> {
  const text = unique('reaches every page');
  await tellEveryone(pages[0] as Page, text);
  for (const page of pages) {
    await expect(page.locator('main [data-message]', { hasText: text })).toBeVisible();
  }
}

test('RWM-17 ten open pages share one stream, and each of them is live', async ({ context }) => {
  const streams = streamsOf(context);
  const pages: Page[] = [];
  for (let i = 0; i < TABS; i++) {
    const page = await context.newPage();
    await open(page, 'overview');
    pages.push(page);
    await expect.poll(streams).toBe(1);
  }
  const [first, ...others] = pages as [Page, ...Page[]];
  await expectLive(pages);
  await expect.poll(() => hasOpenAtMost(2, first)).toBe(true);

  await first.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Decisions' }).click();
  await expect(first.locator('main li').first()).toBeVisible();

  await first.close(); // it was the page that had the stream
  await expect.poll(streams).toBe(1);
  await expectLive(others);
  await others[0]?.goto('about:blank');
  await expect.poll(streams).toBe(1);
  await expectLive(others.slice(1));
});

test('RWM-17 a frozen page gives the stream to another, and is live again when it goes on', async ({
  context,
}) => {
  const streams = streamsOf(context);
  const [first, second] = [await context.newPage(), await context.newPage()];
  await open(first, 'overview');
  await open(second, 'overview');
  const browser = await context.newCDPSession(first);
  await browser.send('Page.setWebLifecycleState', { state: 'frozen' });
  await expectLive([second]);
  await browser.send('Page.setWebLifecycleState', { state: 'active' });
  await expectLive([first, second]);
  await expect.poll(streams).toBe(1);
});

test('RWM-17 a page that stops without a word loses the stream to a visible one', async ({ context }) => {
  const [first, second] = [await context.newPage(), await context.newPage()];
  await open(first, 'overview');
  await open(second, 'overview');
  const debug = await context.newCDPSession(first);
  await debug.send('Debugger.enable');
  await debug.send('Debugger.pause');
  await expectLive([second]);
  await debug.send('Debugger.disable');
  await expectLive([second, first]);
  await expect.poll(() => hasOpenAtMost(1, second)).toBe(true);
});

alone('RWM-17 ten open pages come back when Bridge does', async ({ fresh }) => {
  const context = fresh.page.context();
  const streams = streamsOf(context);
  const pages = [fresh.page];
  while (pages.length < TABS) {
    const page = await context.newPage();
    await page.goto(fresh.page.url());
    pages.push(page);
  }
  for (const page of pages) await open(page, 'settings');
  await fresh.kill();
  for (const page of pages) await expect(page.getByText(/Bridge does not answer since/)).toBeVisible();
  await fresh.again();
  for (const page of pages) {
    await expect(page.getByText('Bridge does not answer')).toHaveCount(0);
    await expect(page.getByRole('checkbox', { name: 'Notifications' })).toBeEnabled();
  }
  await expect.poll(streams).toBe(1);
});
