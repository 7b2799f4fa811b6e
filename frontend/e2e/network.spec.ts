import { once } from 'node:events';
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { looksRight } from './looks';
import { open } from './dashboard';
import type { Fresh } from './fresh';
import { config, invite, pair, settings, test, type PC } from './pcs';

test('RMT-01 a code of the page is typed in a terminal of the other PC, and wrong ones are told', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  const { address, code } = await invite(page);
  const card = page.getByRole('region', { name: 'Pair another PC with this one' });
  await expect(card.getByRole('timer')).toHaveText(/^(10:00|9:\d\d) left$/);
  await expect(card).toContainText('After three wrong codes it is burnt.');
  await expect(card).toContainText('Only programs of this PC can reach that address.');
  const wrong = await laptop.run(['link', address, '--code-stdin'], '0000-0000');
  expect(wrong.code).not.toBe(0);
  await expect(card).toContainText('One wrong code so far; after three it is burnt.');
  await page.reload();
  await expect(card.locator('.code')).toHaveText(code); // whoever reloads the page has not lost it
  const linked = await laptop.run(['link', address, '--code-stdin', '--json'], code);
  expect(linked.code).toBe(0);
  const notice = page.getByRole('region', { name: 'Paired with laptop' });
  await expect(notice).toContainText('Everything is denied until you allow it');
  await expect(notice).toContainText('laptop may do nothing here.');
  const { id } = JSON.parse(linked.out) as { id: string }; // desk's, as laptop knows it
  const shown = (text: string) => text.slice(0, 12).replace(/(.{4})(?=.)/g, '$1 ');
  await expect(notice.locator('code').first()).toHaveText(shown(id));
  const network = JSON.parse((await laptop.run(['network', '--json'])).out) as { id: string };
  await expect(notice.locator('code').nth(1)).toHaveText(shown(network.id));
  expect(page.url()).not.toContain(code);
});

test('RMT-01 three wrong codes burn what the page shows', async ({ fresh, laptop }) => {
  const { page } = fresh;
  const { address, code } = await invite(page);
  for (let i = 0; i < 3; i++) await laptop.run(['link', address, '--code-stdin'], '0000-0000');
  const burnt = page.getByRole('region', { name: 'The code is burnt' });
  await expect(burnt).toContainText('Three wrong codes were given');
  expect((await laptop.run(['link', address, '--code-stdin'], code)).code).not.toBe(0);
  await burnt.getByRole('button', { name: 'Show another code' }).click();
  await expect(page.locator('.code')).not.toHaveText(code);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.locator('.code')).toHaveCount(0);
});

test('RMT-01 a code of a terminal is typed on the page, and stays out of address and log', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  const urls: string[] = [];
  page.on('request', (request) => urls.push(request.url()));
  await open(page, 'network');
  const { address, code, process } = await laptop.pair();
  await page.getByRole('button', { name: 'Enter a code…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Enter a code' });
  await expect(dialog.getByRole('textbox', { name: 'Address' })).toBeFocused();
  await dialog.getByRole('textbox', { name: 'Address' }).fill(address);
  await dialog.getByRole('textbox', { name: 'Code' }).fill('00000000');
  await expect(dialog.getByRole('textbox', { name: 'Code' })).toHaveValue('0000-0000');
  await dialog.getByRole('button', { name: 'Pair' }).click();
  await expect(dialog.getByRole('alert')).toContainText('the code is wrong, was used, or has expired');
  const typed = code.toLowerCase().replace('-', '');
  await dialog.getByRole('textbox', { name: 'Code' }).fill(typed);
  await dialog.getByRole('button', { name: 'Pair' }).click();
  await expect(page.getByRole('region', { name: 'Paired with laptop' })).toContainText(
    'Everything is denied until you allow it',
  );
  if (process.exitCode === null) await once(process, 'exit');
  expect(process.exitCode).toBe(0);
  const log = await readFile(join(fresh.home, '.bridge', 'logs', 'bridge.log'), 'utf8').catch(() => '');
  for (const text of [...urls, log])
    for (const form of [code, code.replace('-', ''), typed]) expect(text).not.toContain(form);
});

test('RMT-06 what the other PC may do is said in words, saved in config.json and taken back', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  await pair(page, laptop);
  const src = join(await realpath(fresh.home), 'src');
  await mkdir(src);
  await page.getByRole('button', { name: 'What laptop may do…' }).click();
  const dialog = page.getByRole('dialog', { name: 'What may laptop do here?' });
  const says = dialog.getByRole('status', { name: 'What that means' });
  const save = dialog.getByRole('button', { name: 'Save' });
  await expect(says).toHaveText('laptop may do nothing here.');
  await expect(save).toBeDisabled();
  await dialog.getByRole('checkbox', { name: 'Have jobs done here' }).check();
  await expect(says).toContainText('It is allowed jobs, but no agent for them: none starts.');
  await dialog.getByRole('checkbox', { name: 'codex' }).check();
  await dialog.getByRole('checkbox', { name: 'claude' }).check();
  const folder = dialog.getByRole('textbox', { name: 'Another folder' });
  for (const [bad, sentence] of [
    ['src', 'is not an absolute folder'],
    ['/', 'is everything on this PC'],
    [join(src, 'missing'), 'there is no folder'],
    [join(src, '..', 'src', '..'), 'is really'],
  ] as const) {
    await folder.fill(bad === join(src, '..', 'src', '..') ? `${src}/..` : bad);
    await folder.press('Enter');
    await expect(says.getByRole('alert')).toContainText(sentence);
    await expect(save).toBeDisabled();
  }
  await folder.fill(src);
  await dialog.getByRole('button', { name: 'Add' }).click();
  await expect(dialog.getByRole('list', { name: 'Folders' })).toContainText(src);
  await expect(folder).toHaveValue('');
  const may = `laptop may start codex and claude jobs that edit files below ${src} (besides these they read the system and their agents' settings, and their agents reach the network); nothing else.`;
  await dialog.getByRole('checkbox', { name: 'Links with paired PCs are on' }).uncheck();
  await expect(says).toContainText(`Links are off, so laptop may do nothing here. Were they on: ${may}`);
  await dialog.getByRole('checkbox', { name: 'Links with paired PCs are on' }).check();
  await expect(says).toContainText(may);
  await expect(says).toContainText('it can read your other files, too');
  expect(await readFile(config(fresh), 'utf8')).toBe(settings('desk')); // a preview saves nothing

  // Somebody edits the file meanwhile: that counts, too.
  await writeFile(config(fresh), settings('desk').replace('"kept"', '"edited by hand"'));
  await save.click();
  await expect(dialog.getByRole('alert')).toContainText('config.json was changed meanwhile');
  await expect(says).toContainText(may);
  await save.click();
  await expect(dialog).toHaveCount(0);
  expect(JSON.parse(await readFile(config(fresh), 'utf8'))).toEqual({
    theirs: { deep: [1] },
    network: {
      name: 'desk',
      port: 0,
      mine: 'edited by hand',
      enabled: true,
      remoteJobs: { enabled: true, allowRoots: [src], agents: ['codex', 'claude'], allowPeers: ['laptop'] },
    },
  });
  const row = page.locator('[data-pc=laptop]');
  await expect(row).toContainText(may);
  await page.getByRole('button', { name: 'Done' }).click();

  await row.getByRole('button', { name: 'Unpair… laptop' }).click();
  const ask = page.getByRole('dialog', { name: 'Unpair laptop?' });
  await ask.getByRole('button', { name: 'Keep it' }).click();
  await expect(row).toHaveCount(1);
  await row.getByRole('button', { name: 'Unpair… laptop' }).click();
  await ask.getByRole('button', { name: 'Unpair laptop' }).click();
  await expect(row).toHaveCount(0);
  expect(await readFile(config(fresh), 'utf8')).not.toContain('laptop');
});

test('RMT-01 a link comes up once both want it, and what each runs is shown', async ({ fresh, laptop }) => {
  const { page } = fresh;
  await pair(page, laptop);
  await page.getByRole('button', { name: 'Where it can be reached…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Where can other PCs reach this one?' });
  await dialog.getByRole('checkbox', { name: 'Links with paired PCs are on' }).check();
  await expect(dialog.getByRole('status', { name: 'What that means' })).toContainText('Links are on');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(/Links are on; this PC listens at 127\.0\.0\.1:\d+/)).toBeVisible();
  await expect(page.locator('[data-pc=laptop]')).toContainText('not linked');
  const theirs = join(laptop.home, '.bridge', 'config.json');
  await writeFile(theirs, settings('laptop').replace('"port"', '"enabled": true, "port"'));
  await expect(page.locator('[data-pc=laptop]')).toContainText(/linked\s+for/);
  await expect(page.locator('[data-pc=laptop]')).toContainText('Bridge 0.29.16');
});

test('RMT-06 a name that nobody has is told and taken out', async ({ fresh, laptop }) => {
  const { page } = fresh;
  await pair(page, laptop);
  await writeFile(
    config(fresh),
    '{"network": {"port": 0, "name": "desk", "messages": {"allowPeers": ["old", "laptop"]}}}',
  );
  await open(page, 'network');
  await page.getByRole('button', { name: 'Take old out' }).click();
  await expect(page.getByRole('button', { name: 'Take old out' })).toHaveCount(0);
  expect(JSON.parse(await readFile(config(fresh), 'utf8'))).toEqual({
    network: { port: 0, name: 'desk', messages: { allowPeers: ['laptop'] } },
  });
});

/** What the page can look like, each by its name. */
async function* looks(fresh: Fresh, laptop: PC): AsyncGenerator<string> {
  const { page } = fresh;
  await open(page, 'network');
  yield 'empty';
  const { address, code } = await invite(page);
  await laptop.run(['link', address, '--code-stdin'], '0000-0000');
  await page.getByText('One wrong code so far').waitFor();
  yield 'code';
  await page.getByRole('button', { name: 'Enter a code…' }).click();
  yield 'enter';
  await page.keyboard.press('Escape');
  expect((await laptop.run(['link', address, '--code-stdin'], code)).code).toBe(0);
  await page.getByRole('region', { name: 'Paired with laptop' }).waitFor();
  yield 'paired';
  const src = join(await realpath(fresh.home), 'src');
  await mkdir(src, { recursive: true });
  await page.getByRole('button', { name: 'What laptop may do…' }).click();
  const dialog = page.getByRole('dialog', { name: 'What may laptop do here?' });
  await dialog.getByRole('checkbox', { name: 'Links with paired PCs are on' }).check();
  await dialog.getByRole('checkbox', { name: 'Have jobs done here' }).check();
  await dialog.getByRole('checkbox', { name: 'Write to sessions' }).check();
  await dialog.getByRole('checkbox', { name: 'codex' }).check();
  await dialog.getByRole('textbox', { name: 'Another folder' }).fill(src);
  await dialog.getByRole('button', { name: 'Add' }).click();
  await dialog.getByText('nothing else.').waitFor();
  yield 'policy';
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Done' }).click();
  yield 'list';
  await page.getByRole('button', { name: 'Where it can be reached…' }).click();
  yield 'open';
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Unpair… laptop' }).click();
  yield 'unpair';
}

test('RMT-01 RMT-06 the Network page passes axe and fits 360, 800 and 1440 pixels', async ({
  fresh,
  laptop,
}) => {
  for await (const look of looks(fresh, laptop)) await looksRight(fresh.page, look);
});
