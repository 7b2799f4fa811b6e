import { expect } from '@playwright/test';
import { violations } from './axe';
import { open, test as dashboard } from './dashboard';
import { misfits } from './fits';
import { test } from './fresh';
import { full, sessionName } from './full';
import { looksRight } from './looks';
import { choose, hook } from './prompting';

const PORT = {
  title: 'Which port shall the service listen on?',
  context: '4777 is taken by another program on this PC.',
  options: [
    { label: '4778', consequence: 'The tests run as they are.' },
    { label: 'A free one', consequence: 'Three tests are rewritten.' },
  ],
};
const CALL = {
  tool_name: 'Bash',
  tool_input: { command: 'rm -rf build && make', description: 'Build anew' },
};

test('PGE-07 a question with choices and one in words are answered on the Overview itself', async ({
  fresh,
}) => {
  const { page, begin } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
  await open(page, 'overview');
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  await session.call('ask_owner', PORT);
  await session.call('ask_owner', { title: 'What is it called?' });
  const row = (title: string) => page.locator('main li', { has: page.getByText(`asker asks: ${title}`) });

  const choice = row(PORT.title);
  await expect(choice.locator('[data-question]')).toHaveCount(0);
  await choice.getByRole('link', { name: 'Details' }).click();
  await expect(choice.locator('[data-question]')).toBeFocused();
  await looksRight(page, 'overview-question', [360, 1440]);
  await page.keyboard.press('2');
  await page.keyboard.press('Enter');
  await expect(choice).toContainText('Answered: A free one.');

  const words = row('What is it called?');
  await words.getByRole('link', { name: 'Answer' }).click();
  await words.getByLabel('Your answer').fill('order-core');
  await page.keyboard.press('Control+Enter');
  await expect(words).toContainText('Answered: order-core.');
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible();
  const mail = await session.call('inbox', { limit: 100 });
  expect(mail).toContain('A free one');
  expect(mail).toContain('order-core');

  // What became of it stays until it is closed.
  await choice.getByRole('link', { name: 'Close' }).click();
  await expect(choice).toHaveCount(0);
  await words.getByRole('link', { name: 'Close' }).click();
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
});

test('PGE-07 a permission is allowed on the Overview itself, and a card in use does not move', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  await open(page, 'overview');
  const asked = hook(home, 'PermissionRequest', CALL);
  const row = page.locator('main li', { hasText: 'claude-web asks for permission' });
  const answer = row.getByRole('link', { name: 'Details' });
  await expect(answer).toHaveAttribute('aria-expanded', 'false');
  await answer.click();
  const card = row.locator('[data-approval]');
  await expect(card.getByLabel('What exactly')).toHaveText('rm -rf build && make');
  await session.call('ask_owner', PORT);
  const needs = page.locator('section[aria-labelledby=needs] > ul > li');
  await expect(needs).toHaveCount(2);
  await expect(needs.first()).toContainText('claude-web asks for permission');
  await expect(page).toHaveURL(/#\/overview$/);
  await card.getByRole('button', { name: 'Allow once' }).click();
  expect(JSON.parse(await asked.said)).toEqual({
    hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } },
  });
  await expect(card).toContainText('Delivered: allowed by you');
  await expect(needs.first()).toContainText('claude-web asks for permission');
});

test('PGE-07 a short question and a short permission take one click, and a second click answers nothing else', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  await open(page, 'overview');
  const row = (title: string) => page.locator('main li', { has: page.getByText(title, { exact: true }) });

  const answer = session.call('ask_owner', { ...PORT, blocking: true });
  const question = row(`claude-web asks: ${PORT.title}`);
  await expect(question.getByRole('button', { name: 'A free one' })).toHaveAccessibleDescription(
    'Three tests are rewritten.',
  );
  await looksRight(page, 'overview-quick-question', [360, 1440]);
  await question.getByRole('button', { name: '4778' }).click();
  expect(await answer).toContain('4778');
  await expect(question).toContainText('Answered: 4778.');
  await question.getByRole('link', { name: 'Close' }).click();

  const asked = hook(home, 'PermissionRequest', CALL);
  const permission = row('claude-web asks for permission');
  await expect(permission).toContainText('rm -rf build && make');
  await session.call('ask_owner', { ...PORT, title: 'Which file?' });
  await expect(row('claude-web asks: Which file?').getByRole('button', { name: '4778' })).toBeVisible();
  await looksRight(page, 'overview-quick', [360, 1440]);
  await permission.getByRole('button', { name: 'Allow once' }).dblclick();
  expect(JSON.parse(await asked.said)).toMatchObject({
    hookSpecificOutput: { decision: { behavior: 'allow' } },
  });
  await expect(permission).toContainText('allowed by you');
  await expect(permission.locator('[data-approval]')).toBeVisible();
  await expect(row('claude-web asks: Which file?').getByRole('button', { name: '4778' })).toBeVisible();
  await permission.getByRole('link', { name: 'Close' }).click();

  // A reason is asked for before a denial; by keyboard alone.
  const refused = hook(home, 'PermissionRequest', CALL);
  await expect(permission.getByRole('button', { name: 'Deny…' })).toBeVisible();
  await page.keyboard.press('d');
  await expect(permission.getByRole('button', { name: 'Deny…' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(permission.getByLabel('Why not?')).toBeFocused();
  await page.keyboard.type('The cache is needed.');
  await page.keyboard.press('Control+Enter');
  expect(JSON.parse(await refused.said)).toMatchObject({
    hookSpecificOutput: { decision: { behavior: 'deny', message: 'The cache is needed.' } },
  });
});

test('PGE-07 a request that a row cannot show whole is answered by its card alone', async ({ fresh }) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  await open(page, 'overview');
  const command = `make ${'target '.repeat(60)}`.trim();
  const asked = hook(home, 'PermissionRequest', { tool_name: 'Bash', tool_input: { command } });
  const row = page.locator('main li', { hasText: 'claude-web asks for permission' });
  await expect(row.getByRole('button')).toHaveCount(0);
  await row.getByRole('link', { name: 'Answer' }).click();
  await row.getByRole('button', { name: 'Allow once' }).click();
  expect(JSON.parse(await asked.said)).toMatchObject({
    hookSpecificOutput: { decision: { behavior: 'allow' } },
  });
});

test('PGE-07 who waits for you stands first among those at work, with what it asks and since when', async ({
  fresh,
}) => {
  const { page, begin } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
  await open(page, 'overview');
  const work = page.getByRole('region', { name: 'At work' });
  await expect(work).toContainText('Nobody is at work.');
  const answer = session.call('ask_owner', { ...PORT, blocking: true });
  const line = work.getByRole('listitem');
  await expect(line).toHaveCount(1);
  await expect(line).toContainText('waits');
  await expect(line).toContainText(`asks: ${PORT.title}`);
  await expect(line.locator('.since')).toContainText(/just now|for \d+ s/);
  await expect(work.getByRole('heading')).toHaveText('At work, 1 held up');
  await page.getByRole('link', { name: 'Details' }).click();
  await page.locator('[data-option="1"]').click();
  expect(await answer).toContain('4778');
  await expect(work.getByRole('heading')).toHaveText('At work');
});

dashboard.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

dashboard(
  'PGE-07 the Overview of a crowd says above the fold who works on what since when',
  async ({ page }) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await full(page);
    await open(page, 'overview');
    const work = page.getByRole('region', { name: 'At work' });
    await expect(work.getByRole('heading')).toHaveText('At work, 1 held up');
    const lines = work.getByRole('listitem');
    await expect(lines).toHaveCount(10);
    for (const line of await lines.all()) await expect(line).toBeInViewport({ ratio: 1 });
    // The job that asks for permission comes first, with how long it has waited.
    await expect(lines.first()).toContainText('Job 3: bring the tests of mobile up to date');
    await expect(lines.first()).toContainText('asks for permission');
    await expect(lines.first().locator('.since')).toHaveText(/for [45] min/);
    await expect(lines.filter({ hasText: 'go test ./...' }).first().locator('.since')).toHaveText(
      /for \d+ min/,
    );
    await work.getByRole('button', { name: 'All 23 at work' }).click();
    const busy = lines.filter({ hasText: sessionName(4) });
    await expect(busy.locator('.since')).toHaveText(/for [45] min/);
    expect(await violations(page)).toEqual([]);
    await lines.first().getByRole('link').click();
    await expect(page).toHaveURL(/#\/runs\/job-3/);
  },
);

dashboard(
  'PGE-07 the menu of a phone has four places and More, each large enough to be touched',
  async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, 'overview');
    const menu = page.getByRole('navigation', { name: 'Main' });
    const more = menu.getByRole('button', { name: 'More' });
    const seen = menu.locator('.top > li > :is(a, button)').filter({ visible: true });
    await expect(seen).toHaveText([/Needs you/, 'Overview', 'Sessions', /Runs/, 'More']);
    for (const place of await seen.all()) {
      const box = await place.boundingBox();
      expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(44);
    }
    expect(await page.evaluate(misfits)).toEqual([]);

    await more.click();
    await expect(more).toHaveAttribute('aria-expanded', 'true');
    for (const name of ['Decisions', 'Search', 'Storage', 'Network', 'Settings']) {
      const box = await menu.getByRole('link', { name }).boundingBox();
      expect(Math.min(box?.width ?? 0, box?.height ?? 0), name).toBeGreaterThanOrEqual(44);
    }
    await looksRight(page, 'phone-more', [360]);
    await page.keyboard.press('Escape');
    await expect(more).toBeFocused();
    await expect(menu.getByRole('link', { name: 'Network' })).toBeHidden();

    await page.keyboard.press('Enter');
    await menu.getByRole('link', { name: 'Network' }).click();
    await expect(page.getByRole('heading', { level: 1, name: 'Network' })).toBeVisible();
    await expect(menu.getByRole('link', { name: 'Network' })).toBeHidden();
    await page.setViewportSize({ width: 1440, height: 900 });
    await expect(menu.getByRole('link', { name: 'Network' })).toBeVisible();
    await expect(more).toBeHidden();
  },
);
