import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, type Page } from '@playwright/test';
import { shot } from './shot';
import { looksRight } from './looks';
import { open } from './dashboard';
import { config, pair, pairByWay, settings, test, type PC } from './pcs';

/** What config.json of both says from then on: links are on, and this is allowed. */
async function link(page: Page, desk: string, laptop: PC, here: object, there: object): Promise<void> {
  const write = (file: string, name: string, allows: object) => {
    const before = JSON.parse(settings(name)) as { network: object };
    return writeFile(
      file,
      JSON.stringify({
        ...before,
        jobs: { enabled: true },
        network: { ...before.network, enabled: true, ...allows },
      }),
    );
  };
  await write(desk, 'desk', here);
  await write(join(laptop.home, '.bridge', 'config.json'), 'laptop', there);
  await open(page, 'network');
  await expect(page.locator('[data-pc=laptop]')).toContainText(/linked\s+for/);
}

test('RMT-21 the strip tells what a paired PC does with a message: waiting, refused, there, read', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  await pair(page, laptop);
  const planner = await fresh.begin(
    '--agent',
    'claude',
    '--name',
    'planner',
    '--session',
    'p1',
    '--cwd',
    fresh.home,
  );
  const api = await laptop.begin(
    '--agent',
    'codex',
    '--name',
    'api',
    '--session',
    's1',
    '--cwd',
    laptop.home,
  );
  await api.call('peers');
  await planner.call('peers');
  await link(page, config(fresh), laptop, {}, {});
  await planner.call('send', { to: 'laptop/api', message: 'not allowed yet' });
  await open(page, '');
  const strip = (body: string) =>
    page
      .getByRole('listitem')
      .filter({ hasText: body })
      .getByRole('button', { name: /^Delivery: / })
      .first();
  const refused = strip('not allowed yet');
  await expect(refused).toContainText(
    'laptop refused it: messages of desk are not allowed here (network.messages.allowPeers)',
  );
  await expect(refused.locator('.words')).toHaveClass(/\bbad\b/);
  await refused.click();
  const details = page.getByRole('complementary');
  await expect(details.getByText('not possible')).toHaveCount(4); // nobody waits for what cannot come
  await expect(details).toContainText('laptop refused it');

  laptop.sleep();
  await link2(laptop, { messages: { allowPeers: ['desk'] } });
  await planner.call('send', { to: 'laptop/api', message: 'is main green?' });
  await expect(strip('is main green?')).toContainText('waiting for laptop');
  laptop.wake();
  await expect(strip('is main green?')).toContainText(/on laptop since \d\d:\d\d/);
  await expect(strip('is main green?').locator('.words')).not.toHaveClass(/\bbad\b/);
  await api.call('inbox');
  await api.call('peers');
  await expect(strip('is main green?')).toContainText(/read \d\d:\d\d/);
});

/** Changes what laptop allows. */
async function link2(laptop: PC, allows: object): Promise<void> {
  const before = JSON.parse(settings('laptop')) as { network: object };
  await writeFile(
    join(laptop.home, '.bridge', 'config.json'),
    JSON.stringify({
      ...before,
      jobs: { enabled: true },
      network: { ...before.network, enabled: true, ...allows },
    }),
  );
}

test('RMT-23 the sessions and jobs of a paired PC are listed where its owner shows them', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  await pair(page, laptop);
  const folder = await realpath(laptop.home);
  const api = await laptop.begin('--agent', 'codex', '--name', 'api', '--session', 's1', '--cwd', folder);
  await api.call('peers');
  await link(page, config(fresh), laptop, {}, {});
  const row = page.locator('[data-pc=laptop]');
  await expect(row).toContainText('Nothing is shown: laptop says: views of desk are not allowed here');
  await link2(laptop, { dashboard: { allowPeers: ['desk'] } });
  const sessions = row.getByRole('list', { name: 'Sessions on laptop' });
  await expect(sessions.getByRole('listitem')).toHaveText([/api\s*idle|api\s*busy/]);
  await expect(sessions).toContainText(folder.split('/').at(-1) ?? '-');
  await expect(row.getByRole('button')).toHaveCount(3); // to read only: what may be done is about this PC, as are its decisions

  const told = await api.call('spawn_codex', {
    prompt: `until ${join(folder, 'gate')}\nanswer Done.`,
    title: 'Count the files',
    cwd: folder,
    access: 'read',
  });
  const { job } = JSON.parse(told) as { job: string };
  const going = row.getByRole('list', { name: 'Jobs that go on on laptop' });
  await expect(going.locator(`[data-shown="laptop/${job}"]`)).toContainText('Count the files');
  await expect(going).toContainText('running');
  await expect(sessions.getByRole('listitem')).toHaveCount(1); // a job is no session
  await looksRight(page, 'lists');
  await writeFile(join(folder, 'gate'), '');
  await row.getByText('One job that has ended').click();
  await expect(row.getByRole('list', { name: 'Jobs that have ended on laptop' })).toContainText('finished');

  await link2(laptop, {});
  await expect(row).toContainText('Nothing is shown: laptop says: views of desk are not allowed here');
  await expect(sessions).toHaveCount(0);
});

test('RMT-13 RMT-17 the Runs page says where a job is, and what is not known of it', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  const way = await pairByWay(page, laptop);
  const src = join(await realpath(laptop.home), 'src');
  await mkdir(src);
  const jobs = { enabled: true, allowRoots: [src], agents: ['codex'], allowPeers: ['desk'] };
  await link(page, config(fresh), laptop, {}, { remoteJobs: jobs });
  const boss = await fresh.begin(
    '--agent',
    'claude',
    '--name',
    'boss',
    '--session',
    'b1',
    '--cwd',
    fresh.home,
  );
  const give = async (title: string) => {
    const told = await boss.call('spawn_codex', {
      prompt: `until ${join(src, 'gate')}\nanswer Done.`,
      title,
      host: 'laptop',
      cwd: src,
      access: 'read',
    });
    return (JSON.parse(told) as { job: string }).job;
  };
  way.hold(); // the job is given and begins; that it has is not heard
  const job = await give('Count the files');
  await open(page, 'runs');
  const row = page.locator(`main [data-run="${job}"]`);
  await expect(row).toContainText('on laptop');
  await expect(row).toContainText('starting?');
  await expect(row).toContainText(
    'laptop did not say whether the job was started: look there before you ask again',
  );
  await open(page, `runs/${job}`);
  await expect(page.getByRole('status').filter({ hasText: 'laptop did not say' })).toBeVisible();
  await shot(page, 'doubt');
  way.release();
  await open(page, 'runs');
  await expect(row).toContainText('running');
  await expect(row).not.toContainText('running?');
  await expect(row).not.toContainText('did not say');
  await writeFile(join(src, 'gate'), '');
  await expect(row).toContainText('finished');
  const there = JSON.parse((await laptop.run(['runs', '--all', '--json'])).out) as { runs: unknown[] };
  expect(there.runs).toHaveLength(1); // it was begun once
});

test('RMT-16 RMT-18 words, settings, answers and the end go to a run on a paired PC by its name here', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  await pair(page, laptop);
  const src = join(await realpath(laptop.home), 'src');
  await mkdir(src);
  const jobs = { enabled: true, allowRoots: [src], agents: ['codex'], allowPeers: ['desk'] };
  await link(page, config(fresh), laptop, {}, { remoteJobs: jobs });
  const boss = await fresh.begin(
    '--agent',
    'claude',
    '--name',
    'boss',
    '--session',
    'b1',
    '--cwd',
    fresh.home,
  );
  const gate = join(src, 'gate');
  const told = await boss.call('spawn_codex', {
    prompt: `change build.txt clean\nuntil ${gate}\nanswer Done.`,
    title: 'Clean up',
    host: 'laptop',
    cwd: src,
    access: 'ask',
  });
  const { job } = JSON.parse(told) as { job: string };
  const post = (path: string, body: object) =>
    page.evaluate(
      async ([path, body]) => {
        const answer = await fetch(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-bridge': '1' },
          body,
        });
        return { status: answer.status, text: await answer.text() };
      },
      [path, JSON.stringify(body)] as const,
    );
  interface Asked {
    id: string;
    job: string;
    state: string;
    detail: string;
    remote?: { host: string; name: string };
  }
  const origin = new URL(page.url()).origin;
  const approvals = async () =>
    ((await (await page.request.get(`${origin}/api/approvals`)).json()) as { approvals: Asked[] }).approvals;
  await open(page, 'runs');
  await expect
    .poll(async () =>
      (await approvals()).map((a) => [a.job, a.state, a.detail.split('\n')[0], a.remote?.host]),
    )
    .toEqual([[job, 'asked', 'build.txt', 'laptop']]);
  const [asked] = await approvals();
  const settings = await post('/api/subagents/settings', { job, title: 'Clean the build' });
  expect(settings.status, settings.text).toBe(200);
  await expect(page.locator(`main [data-run="${job}"]`)).toContainText('Clean the build');
  const answer = await post(`/api/approvals/${asked?.id ?? ''}`, { decision: 'allow' });
  expect(answer.status, answer.text).toBe(200);
  await expect
    .poll(async () => (await approvals())[0]?.state ?? 'gone')
    .toMatch(/^(delivered|applied|gone)$/);
  expect((await post(`/api/approvals/${asked?.id ?? ''}`, { decision: 'deny' })).status).toBe(409); // the first answer wins

  const words = await post('/api/subagents/message', { job, body: 'answer And the docs.' });
  expect(words.status, words.text).toBe(200);
  await writeFile(gate, '');
  const row = page.locator(`main [data-run="${job}"]`);
  await expect(row).toContainText('finished');
  const again = await post('/api/subagents/message', { job, body: `until ${src}/never` }); // its own session goes on
  expect(again.status, again.text).toBe(200);
  await expect(row).toContainText('running');
  const end = await post('/api/subagents/cancel', { job });
  expect(end.status, end.text).toBe(200);
  await expect(row).toContainText('cancelled');

  laptop.sleep(); // and without an answer nobody says that it was done
  const lost = await post('/api/subagents/message', { job, body: 'answer Never.' });
  expect(lost.status, lost.text).toBe(503);
  expect(lost.text).toContain('not known');
  laptop.wake();
});
