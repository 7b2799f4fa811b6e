// A way to an address on which what comes back to it can be held up: one side goes on to
// hear the other and works, and its own words do not arrive. Unlike a PC that stands still
// it may last for as long as a slow machine needs: no clock of that PC runs out meanwhile.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class Way {
  #server: Server;
  #held = false;
  /** Those who came this way, each with its connection to where the way leads. */
  #callers = new Map<Socket, Socket>();

  private constructor(host: string, port: number) {
    this.#server = createServer((caller) => {
      const called = connect(port, host);
      this.#callers.set(caller, called);
      called.pipe(caller);
      if (!this.#held) caller.pipe(called);
      const end = () => {
        this.#callers.delete(caller);
        caller.destroy();
        called.destroy();
      };
      for (const socket of [caller, called]) socket.on('error', end).on('close', end);
    });
  }

  static async to(address: string): Promise<Way> {
    const { hostname, port } = new URL(`tcp://${address}`);
    const way = new Way(hostname, Number(port));
    way.#server.listen(0, '127.0.0.1');
    await once(way.#server, 'listening');
    return way;
  }

  /** Where it begins, host:port. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on nothing that its callers say arrives. */
  hold(): void {
    this.#held = true;
    for (const [caller, called] of this.#callers) caller.unpipe(called).pause();
  }

  /** What they have said meanwhile arrives, and all that follows. */
  release(): void {
    this.#held = false;
    for (const [caller, called] of this.#callers) caller.pipe(called);
  }

  end(): void {
    this.#server.close();
    for (const caller of this.#callers.keys()) caller.destroy();
  }
}
