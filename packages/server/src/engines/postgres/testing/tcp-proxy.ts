import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

interface Link {
  readonly client: Socket;
  readonly server: Socket;
}

/**
 * A network between client and database that can be cut in ways that a real one is: at once, silently, or between a
 * request and its answer.
 */
export class TcpProxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #silenced = new Set<Link>();
  /** Whether nothing gets through for a client at that port. */
  #isSilentFor: (clientPort: number) => boolean = () => false;
  #opened = 0;
  #withheld: { text: string; isCut: boolean; seen: () => void } | undefined;

  private constructor(server: Server, target: number) {
    this.#server = server;
    server.on('connection', (client) => this.#join(client, target));
  }

  static async before(target: number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, target);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many connections go through now. */
  get connections(): number {
    return this.#links.size;
  }

  /** How many connections have been made through it so far. */
  get opened(): number {
    return this.#opened;
  }

  /** Breaks every connection off; new ones are let through. */
  cut(): void {
    for (const { client, server } of this.#links) {
      client.destroy();
      server.destroy();
    }
  }

  /**
   * From now on nothing gets through in either direction, and nobody is told; new connections hang. `whose`: for
   * clients at the ports for which it holds, all if it is left out.
   */
  silence(whose: (clientPort: number) => boolean = () => true): void {
    this.#isSilentFor = whose;
    for (const link of this.#links) {
      if (!whose(link.client.remotePort ?? 0)) continue;
      this.#silenced.add(link);
      link.client.unpipe().pause();
      link.server.unpipe().pause();
    }
  }

  /** Lets new connections through again. Those that were silenced stay as they are, and nobody is told. */
  forget(): void {
    this.#isSilentFor = () => false;
  }

  /** Lets new connections through again. Those that were silenced are lost for ever, as behind a forgetful router. */
  restore(): void {
    this.forget();
    for (const { client, server } of this.#silenced) {
      client.destroy();
      server.destroy();
    }
  }

  /**
   * Resolves when the database has answered a request whose bytes hold `text`: the answer is withheld and the
   * connection broken off. The database has by then done what it was asked for.
   */
  cutBeforeAnswerTo(text: string): Promise<void> {
    return new Promise((seen) => (this.#withheld = { text, isCut: true, seen }));
  }

  /** The same, but the connection stands, and nobody is told that the answer will not come. */
  loseAnswerTo(text: string): Promise<void> {
    return new Promise((seen) => (this.#withheld = { text, isCut: false, seen }));
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, target: number): void {
    const server = connect(target, '127.0.0.1').setNoDelay();
    const link = { client: client.setNoDelay(), server };
    this.#links.add(link);
    this.#opened += 1;
    const over = (): void => {
      this.#links.delete(link);
      this.#silenced.delete(link);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', () => undefined).on('close', over);
    if (this.#isSilentFor(client.remotePort ?? 0)) {
      this.#silenced.add(link);
      client.pause();
      return;
    }
    client.pipe(server);
    server.pipe(client);
    client.on('data', (request: Buffer) => {
      const withheld = this.#withheld;
      if (withheld === undefined || !request.includes(withheld.text)) return;
      this.#withheld = undefined;
      server.unpipe(client);
      server.once('data', () => {
        if (withheld.isCut) over();
        withheld.seen();
      });
      server.resume();
    });
  }
}
