// A team's hub, and somebody who talks to it with a PC's key for NATS and no more: what
// that can do is told on the page of the others.

import { spawn, type ChildProcess } from 'node:child_process';
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect, type TLSSocket } from 'node:tls';
import { expect } from '@playwright/test';
import { BINARY, stop } from './dashboard';
import { test as base, type PC } from './pcs';

const PROGRAM = process.env['BRIDGE_HUB_BIN'] ?? join(dirname(BINARY), 'bridge-hub');

export interface Hub {
  /** Where PCs join. */
  address: string;
  /** Shows a code for one PC. */
  invite: () => Promise<string>;
  /** Ends it, as its machine's owner does. */
  end: () => Promise<void>;
}

/** The lines of a program until one has what is looked for. */
async function firstOf(child: ChildProcess, pattern: RegExp): Promise<string> {
  if (child.stdout === null) throw new Error('it has no output');
  for await (const line of createInterface({ input: child.stdout })) {
    const found = pattern.exec(line)?.[1];
    if (found === undefined) continue;
    child.stdout.resume();
    return found;
  }
  throw new Error(`it ended without ${String(pattern)}`);
}

export const test = base.extend<{ hub: Hub }>({
  hub: async ({}, use) => {
    const home = await mkdtemp(join(tmpdir(), 'bridge-e2e-hub-'));
    const run = (...words: string[]) =>
      spawn(PROGRAM, [...words, '--home', home], {
        env: { HOME: home, PATH: process.env['PATH'] },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
    const serving = run(
      'serve',
      '--team',
      'crew',
      '--listen',
      '127.0.0.1',
      '--port',
      '0',
      '--nats-port',
      '0',
    );
    const begun = [serving];
    const address = await firstOf(serving, /PCs join at (\S+)/);
    await use({
      address,
      invite: async () => {
        const child = run('invite', '--json');
        begun.push(child);
        return firstOf(child, /"code": *"([^"]+)"/);
      },
      end: () => stop(serving),
    });
    for (const child of begun) await stop(child);
    await rm(home, { recursive: true, maxRetries: 20 });
  },
});

/** Makes a PC one of the team. */
export async function join_(pc: Pick<PC, 'run'>, hub: Hub): Promise<void> {
  const joined = await pc.run(['join', hub.address, '--code-stdin'], await hub.invite());
  expect(joined.code, joined.err).toBe(0);
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function fromBase32(text: string): Buffer {
  const bits = [...text].map((c) => LETTERS.indexOf(c).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
}

function toBase32(data: Buffer): string {
  const bits = [...data].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? []).map((five) => LETTERS[parseInt(five.padEnd(5, '0'), 2)]).join('');
}

function crc16(data: Buffer): Buffer {
  let crc = 0;
  for (const byte of data) {
    crc ^= byte << 8;
    for (let i = 0; i < 8; i++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return Buffer.from([crc & 0xff, crc >> 8]);
}

interface Membership {
  urls: string[];
  seed: string;
}

/** Logs in with the key for NATS that lies in a PC's home, and says things. */
export async function publish(home: string, messages: { subject: string; body: string }[]): Promise<void> {
  const file = await readFile(join(home, '.bridge', 'network', 'team.json'), 'utf8');
  const { membership } = JSON.parse(file) as { membership: Membership };
  const der = Buffer.concat([
    Buffer.from('302e020100300506032b657004220420', 'hex'),
    fromBase32(membership.seed).subarray(2, 34),
  ]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
  const named = Buffer.concat([Buffer.from([20 << 3]), raw]);
  const at = new URL((membership.urls[0] ?? '').replace('tls:', 'http:'));
  const socket = connect({ host: at.hostname, port: Number(at.port), rejectUnauthorized: false });
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const info = JSON.parse(String((await lines.next()).value).replace(/^INFO /, '')) as { nonce: string };
  const login = {
    nkey: toBase32(Buffer.concat([named, crc16(named)])),
    sig: sign(null, Buffer.from(info.nonce), key).toString('base64url'),
    verbose: false,
    pedantic: false,
    lang: 'node',
    version: '1',
  };
  say(socket, `CONNECT ${JSON.stringify(login)}`);
  for (const { subject, body } of messages)
    say(socket, `PUB ${subject} ${Buffer.byteLength(body)}\r\n${body}`);
  say(socket, 'PING');
  for (;;) {
    const line = await lines.next();
    if (line.done === true) throw new Error('the hub ended the connection');
    if (line.value === 'PONG') break;
  }
  socket.end();
}

const say = (socket: TLSSocket, line: string) => socket.write(`${line}\r\n`);
