import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether it has been let through once, so that its requests are looked at. */
  isWatched: boolean;
}

/**
 * A network between clients and a server that can be cut in ways that a real one is: at once, silently, or between a
 * request and its answer.
 */
export class CuttingProxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #silenced = new Set<Link>();
  /** Whether nothing gets through for a client at that port. */
  #isSilentFor: (clientPort: number) => boolean = () => false;
  #isAway = false;
  #holdsReplies = false;
  #opened = 0;
  #withheld: { text: string; isCut: boolean; seen: () => void } | undefined;

  private constructor(server: Server, target: () => number) {
    this.#server = server;
    server.on('connection', (client) => this.#join(client, target()));
  }

  /** `target` is the server's port, or is asked for it at each connection. */
  static async before(target: number | (() => number)): Promise<CuttingProxy> {
    const server = createServer();
    const proxy = new CuttingProxy(server, typeof target === 'number' ? () => target : target);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** How many connections go through now. */
  get connections(): number {
    return this.#links.size;
  }

  /** How many connections have been made through it so far. */
  get opened(): number {
    return this.#opened;
  }

  /** Breaks every connection off; new ones get through in both directions, unless the server is away. */
  cut(): void {
    this.#holdsReplies = false;
    for (const link of this.#links) destroy(link);
  }

  /** Breaks every connection off, and every new one too, until `comeBack`. */
  goAway(): void {
    this.#isAway = true;
    this.cut();
  }

  comeBack(): void {
    this.#isAway = false;
  }

  /** Requests go on getting through; what the server says stays here, until the connections are cut. */
  holdReplies(): void {
    this.#holdsReplies = true;
    for (const { client, server } of this.#links) server.unpipe(client).resume();
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

  /** Silent as with a cable that is out, until the function is called: then all goes on where it was. */
  pause(): () => void {
    this.silence();
    return () => {
      this.forget();
      for (const link of this.#silenced) this.#letThrough(link);
      this.#silenced.clear();
    };
  }

  /** Lets new connections through again. Those that were silenced stay as they are, and nobody is told. */
  forget(): void {
    this.#isSilentFor = () => false;
  }

  /** Lets new connections through again. Those that were silenced are lost for ever, as behind a forgetful router. */
  restore(): void {
    this.forget();
    for (const link of this.#silenced) destroy(link);
  }

  /**
   * Resolves when the server has answered a request whose bytes hold `text`: the answer is withheld and the connection
   * broken off. The server has by then done what it was asked for.
   */
  cutBeforeAnswerTo(text: string): Promise<void> {
    return new Promise((seen) => (this.#withheld = { text, isCut: true, seen }));
  }

  /** The same, but the connection stands, and nobody is told that the answer will not come. */
  loseAnswerTo(text: string): Promise<void> {
    return new Promise((seen) => (this.#withheld = { text, isCut: false, seen }));
  }

  async close(): Promise<void> {
    this.goAway();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, target: number): void {
    if (this.#isAway) {
      client.destroy();
      return;
    }
    const server = connect(target, '127.0.0.1').setNoDelay();
    const link: Link = { client: client.setNoDelay(), server, isWatched: false };
    this.#links.add(link);
    this.#opened += 1;
    const over = (): void => {
      this.#links.delete(link);
      this.#silenced.delete(link);
      destroy(link);
    };
    for (const socket of [client, server]) socket.on('error', () => undefined).on('close', over);
    if (this.#isSilentFor(client.remotePort ?? 0)) {
      this.#silenced.add(link);
      client.pause();
    } else {
      this.#letThrough(link);
    }
  }

  #letThrough(link: Link): void {
    const { client, server } = link;
    client.pipe(server);
    if (this.#holdsReplies) server.resume();
    else server.pipe(client);
    if (link.isWatched) return;
    link.isWatched = true;
    client.on('data', (request: Buffer) => this.#sent(link, request));
  }

  #sent(link: Link, request: Buffer): void {
    const withheld = this.#withheld;
    if (withheld === undefined || !request.includes(withheld.text)) return;
    this.#withheld = undefined;
    link.server.unpipe(link.client);
    link.server.once('data', () => {
      if (withheld.isCut) destroy(link);
      withheld.seen();
    });
    link.server.resume();
  }
}

function destroy({ client, server }: Link): void {
  client.destroy();
  server.destroy();
}
