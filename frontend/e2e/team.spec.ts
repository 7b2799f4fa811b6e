import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { looksRight } from './looks';
import { shot } from './shot';
import { BINARY, open } from './dashboard';
import { config } from './pcs';
import { join_, publish, test } from './team';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const wanted = (name: string, more: object = {}) =>
  JSON.stringify({ network: { enabled: true, name, port: 0, ...more } });

test('HUB-02 HUB-03 HUB-06 HUB-07 the team: who is there, by which node, what each may do, what all share and what was dropped', async ({
  fresh,
  laptop,
  hub,
}) => {
  const { page } = fresh;
  await writeFile(config(fresh), wanted('desk', { mine: 'kept', messages: { allowPeers: ['laptop'] } }));
  await writeFile(join(laptop.home, '.bridge', 'config.json'), wanted('laptop'));
  await open(page, 'network');
  const none = page.getByRole('region', { name: 'Team' });
  await expect(none).toContainText('This PC belongs to no team.');

  const env = { HOME: fresh.home, PATH: process.env['PATH'] };
  const desk = async (...args: string[]) => promisify(execFile)(BINARY, args, { env });
  await join_(
    {
      run: async (args, input = '') => {
        const done = promisify(execFile)(BINARY, args, { env });
        done.child.stdin?.end(input);
        const { stdout, stderr } = await done;
        return { code: 0, out: stdout, err: stderr };
      },
    },
    hub,
  );
  const team = page.getByRole('region', { name: 'Team crew' });
  await expect(team).toContainText(/Connected to the hub’s node hub-1\sfor a moment/);
  await expect(team).toContainText('this PC is desk in it.');
  await expect(team).toContainText('Nobody else is in it yet');

  await join_(laptop, hub);
  const row = team.locator('[data-pc=laptop]');
  await expect(row).toContainText(/there\sfor a moment/);
  await expect(row).toContainText('laptop may write to the sessions here; nothing else.');
  await expect(row.getByRole('button')).toHaveText([/What it may do/, /Withdraw its decisions/]); // there is no pairing to end
  await expect(team).toContainText('The one other PC is there.');
  await expect(page.getByRole('region', { name: 'Paired PCs' })).toContainText('None yet.');

  // What the whole team shares: in words first, then in config.json beside what it does not know.
  await expect(team).toContainText('No decisions are shared with the team crew as a whole.');
  await team.getByRole('button', { name: 'What the team shares…' }).click();
  const dialog = page.getByRole('dialog', { name: 'What does the team crew share?' });
  const means = dialog.getByRole('status', { name: 'What that means' });
  await expect(means).toHaveText('No decisions are shared with the team crew as a whole.');
  await expect(dialog.getByRole('button', { name: 'Save' })).toBeDisabled();
  await dialog.getByLabel('Share decisions with the whole team').check();
  await expect(means).toHaveText(
    'The whole team crew shares decisions that are for everybody: all its PCs read those made here, also PCs that join later, and those made there hold here.',
  );
  await looksRight(page, 'team-shares', [360, 1440], 1000);
  expect(JSON.parse(await readFile(config(fresh), 'utf8'))).not.toHaveProperty('network.decisions');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog).toBeHidden();
  await expect(team).toContainText('The whole team crew shares decisions');
  await expect(row).toContainText('share decisions that are for everybody, in both directions');
  expect(JSON.parse(await readFile(config(fresh), 'utf8'))).toMatchObject({
    network: { mine: 'kept', decisions: { allowPeers: ['@crew'] }, messages: { allowPeers: ['laptop'] } },
  });
  expect((await desk('team')).stdout).toContain('The whole team crew shares decisions');

  // Who carries what is said to one PC cannot read it any more, from now on.
  await expect(team).toContainText('Readable to the hub');
  await team.getByRole('button', { name: 'What the team shares…' }).click();
  await dialog.getByLabel('Seal what this PC says to another one').check();
  await expect(means).toContainText('What this PC says to another one of the team only that one can read');
  await looksRight(page, 'team-seal', [360, 1440], 1000);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog).toBeHidden();
  await expect(team).toContainText('Sealed: what this PC says to another one only that one can read.');
  expect(JSON.parse(await readFile(config(fresh), 'utf8'))).toMatchObject({
    network: { hub: { seal: true } },
  });

  // Somebody has laptop's key for NATS, but not the one that it signs with.
  const ids = JSON.parse((await desk('team', '--json')).stdout) as { members: { id: string }[] };
  const self = JSON.parse((await desk('network', '--json')).stdout) as { id: string };
  const subject = `bridge.v1.crew.${ids.members[0]?.id ?? ''}.${self.id}.frame`;
  await publish(
    laptop.home,
    [1, 2, 3, 4].map((n) => ({ subject, body: `forged ${n}` })),
  );
  const dropped = team.getByRole('list', { name: 'Dropped' }).getByRole('listitem');
  await expect(dropped).toHaveText([
    /4 ×\s*said in the name of laptop, and not signed with its key\s*last (now|\d+ s ago)/,
  ]);
  // And tries what the hub does not let it do: to speak for desk.
  await publish(laptop.home, [
    { subject: `bridge.v1.crew.${self.id}.${ids.members[0]?.id ?? ''}.frame`, body: 'as desk' },
  ]);
  await expect(dropped).toHaveText([
    /1 ×\s*tried by laptop at the hub, and not allowed there\s*last (now|\d+ s ago)/,
    /4 ×\s*said in the name of laptop, and not signed with its key\s*last (now|\d+ s ago)/,
  ]);
  await team.getByText('What the hub sees').click();
  await expect(team).toContainText(
    "sees who is there, who writes to whom and when, and the team's decisions.",
  );

  await looksRight(page, 'team', [360, 1440], 1000);

  await hub.end();
  await expect(team).toContainText(/The hub is not reached: (the connection ended|.*refused)/);
  await expect(team).toContainText('These were in it when the hub was last heard:');
  await expect(row).toContainText('not reached');
  await shot(page, 'team-away');
});
