import type { Rule } from '../src/lib/api';
import { shot } from './shot';
import { violations } from './axe';
import { expect, test } from './jobs';
import { overlaps } from './overlaps';

test('NED-04 from now on is spelled out, used, listed and taken back', async ({ jobs, page }) => {
  const gate = jobs.gate();
  const job = await jobs.give(
    ['ask go test ./parser', 'ask go test ./lexer', gate.line, 'ask go test ./lexer', 'answer Done.'],
    { title: 'Tests often' },
  );
  await jobs.reaches(job, 'waiting');
  await page.goto('/#/needs');
  const first = page.locator('main [data-approval]').filter({ hasText: 'go test ./parser' });
  await first.getByRole('button', { name: 'From now on…' }).click();
  const form = first.getByRole('form', { name: 'Allow from now on' });
  await expect(form.getByRole('radio', { name: 'exactly as it stands above' })).toBeFocused();
  await expect(form.locator('[data-says]')).toContainText('Exactly this command, whole');
  await page.keyboard.press('ArrowDown');
  await expect(form.getByRole('radio', { name: /begins with go test$/ })).toBeChecked();
  await expect(form.locator('[data-says] pre')).toHaveText('go test');
  await expect(form.locator('[data-says]')).toContainText(`in ${jobs.folder}, until I take it back`);
  expect(await violations(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 800 });
  expect(await page.evaluate(overlaps)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await shot(page, 'rule-form-360');
  await page.setViewportSize({ width: 1280, height: 800 });
  await shot(page, 'rule-form');
  await form.getByRole('button', { name: 'Allow from now on' }).click();
  await expect(first.getByRole('status').filter({ hasText: 'Applied: allowed by you' })).toBeVisible(); // the form's own may stay a moment

  // The second is not asked: the log says by what it was allowed.
  await page.goto(`/#/runs/${job}`);
  await expect(page.getByRole('region', { name: 'Log' })).toContainText(
    'Allowed by your rule: commands that begin with "go test"',
  );
  await expect(page.locator('main [data-approval].open')).toHaveCount(0);

  await page.goto('/#/settings');
  const list = page.locator('main [data-rule-id]');
  await expect(list).toHaveCount(1);
  await expect(list).toContainText('go test');
  await expect(list).toContainText('used 1 time');
  expect(await violations(page)).toEqual([]);
  await list.scrollIntoViewIfNeeded();
  await shot(page, 'rules');
  await list.getByRole('button', { name: /Revoke/ }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByText('Taken back: it allows nothing any more.')).toBeVisible();
  await expect(list).toHaveCount(0);
  const left = (await (await page.request.get('/api/rules')).json()) as { rules: Rule[] };
  expect(left.rules).toEqual([]);

  // Now it is asked again.
  await gate.open();
  await page.goto('/#/needs');
  const third = page.locator('main [data-approval].open').filter({ hasText: 'go test ./lexer' });
  await third.getByRole('button', { name: 'Allow once' }).click();
  await jobs.reaches(job, 'finished');
});
