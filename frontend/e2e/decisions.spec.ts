import type { Page } from '@playwright/test';
import type { Decision } from '../src/lib/api';
import { scopeWords } from '../src/features/decisions/decisions';
import { expect, open, test } from './dashboard';

async function decisionsOf(page: Page, path = ''): Promise<Decision[]> {
  const response = await page.request.get(`/api/decisions${path}`);
  return ((await response.json()) as { decisions: Decision[] }).decisions;
}

test('DEC-21 current decisions are shown with scope, author and time', async ({ page }) => {
  await open(page, 'decisions');
  const current = await decisionsOf(page);
  expect(current.length).toBeGreaterThan(0);
  await expect(page.locator('main li')).toHaveCount(current.length);
  for (const decision of current) {
    const link = page.getByRole('link', { name: decision.topic, exact: true });
    const row = page.locator('main li', { has: link });
    await expect(row).toContainText(decision.author.name);
    await expect(row).toContainText(/now|\d+ (s|min|h|d)/);
    const group = page.locator('main section', { has: link });
    const scope = scopeWords(decision.scope);
    await expect(group).toContainText(decision.scope === 'all' ? 'Everywhere' : scope);
  }
});

test('DEC-21 decisions are searched while typing', async ({ page }) => {
  await open(page, 'decisions');
  const [first] = await decisionsOf(page);
  if (first === undefined) throw new Error('the dashboard under test has no decisions');
  const search = page.getByRole('searchbox', { name: 'Search decisions' });
  await search.pressSequentially(first.topic.toUpperCase());
  const matching = await decisionsOf(page, `?q=${encodeURIComponent(first.topic)}`);
  await expect(page.locator('main li')).toHaveCount(matching.length);
  await search.fill('zzz nothing says this zzz');
  await expect(page.getByText('No current decision matches')).toBeVisible();
});

test('DEC-21 a topic shows its whole history: what superseded what, by whom and when', async ({ page }) => {
  const topic = (await decisionsOf(page)).find((d) => d.supersedes !== null)?.topic ?? '';
  expect(topic).not.toBe('');
  const history = await decisionsOf(page, `/${encodeURIComponent(topic)}/history`);
  await open(page, 'decisions');
  await page.getByRole('link', { name: topic, exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name: topic })).toBeFocused();
  const entries = page.locator('main ol > li');
  await expect(entries).toHaveCount(history.length);
  for (const [i, decision] of history.entries()) {
    const entry = entries.nth(i);
    await expect(entry).toContainText(`Revision ${history.length - i}`);
    await expect(entry).toContainText(decision.current ? 'current' : 'superseded');
    await expect(entry).toContainText(decision.author.name);
    await expect(entry).toContainText(scopeWords(decision.scope));
    await expect(entry).toContainText(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
    if (decision.supersedes !== null) {
      await expect(entry).toContainText(`replaced revision ${history.length - i - 1}`);
    }
  }
  await page.getByRole('searchbox', { name: 'Search this history' }).fill('zzz nothing says this zzz');
  await expect(entries).toHaveCount(0);
});

test('DSK-06 the stream shows a decision by its topic and text, the details what its sessions read', async ({
  page,
}) => {
  const [first] = await decisionsOf(page);
  if (first === undefined) throw new Error('the dashboard under test has no decisions');
  await open(page, 'overview');
  const row = page.locator('main [data-message]', { hasText: `decision: ${first.topic}` }).first();
  await expect(row).not.toContainText('pinned for');
  await row.getByRole('button').first().click();
  await expect(page.getByRole('complementary', { name: 'Details' })).toContainText('pinned for');
});
