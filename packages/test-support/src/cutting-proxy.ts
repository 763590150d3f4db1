import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether it has been forwarded once, so that its requests are inspected. */
  isWatched: boolean;
}

/**
 * A network between clients and a server that can fail as a real one does: at once, silently, or between a request and
 * its response.
 */
export class CuttingProxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #silenced = new Set<Link>();
  /** Whether the traffic of the client at that port is dropped. */
  #isSilentFor: (clientPort: number) => boolean = () => false;
  #isAway = false;
  #holdsReplies = false;
  #opened = 0;
  #withheld: { text: string; isCut: boolean; seen: () => void } | undefined;

  private constructor(server: Server, target: () => number) {
    this.#server = server;
    server.on('connection', (client) => this.#join(client, target()));
  }

  /** `target` is the server's port, or a function that returns it for each connection. */
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

  /** The number of open connections. */
  get connections(): number {
    return this.#links.size;
  }

  /** The number of connections so far. */
  get opened(): number {
    return this.#opened;
  }

  /** Closes every connection; new ones are forwarded in both directions, unless the server is unreachable. */
  cut(): void {
    this.#holdsReplies = false;
    for (const link of this.#links) destroy(link);
  }

  /** Closes every connection, and every new one too, until `comeBack`. */
  goAway(): void {
    this.#isAway = true;
    this.cut();
  }

  comeBack(): void {
    this.#isAway = false;
  }

  /** Requests are still forwarded; responses are dropped, until the connections are cut. */
  holdReplies(): void {
    this.#holdsReplies = true;
    for (const { client, server } of this.#links) server.unpipe(client).resume();
  }

  /**
   * From now on all traffic is dropped silently in both directions; new connections hang. `whose`: for clients at the
   * ports for which it returns true, all if it is left out.
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

  /** Silent as with an unplugged cable, until the returned function is called: then all traffic continues. */
  pause(): () => void {
    this.silence();
    return () => {
      this.forget();
      for (const link of this.#silenced) this.#letThrough(link);
      this.#silenced.clear();
    };
  }

  /** Forwards new connections again. Silenced connections stay silent. */
  forget(): void {
    this.#isSilentFor = () => false;
  }

  /** Forwards new connections again. Silenced connections are lost forever, as with a router that lost its state. */
  restore(): void {
    this.forget();
    for (const link of this.#silenced) destroy(link);
  }

  /**
   * Resolves when the server has answered a request that contains `text`: the response is withheld and the connection
   * closed. The server has then processed the request.
   */
  cutBeforeAnswerTo(text: string): Promise<void> {
    return new Promise((seen) => (this.#withheld = { text, isCut: true, seen }));
  }

  /** The same, but the connection stays open without a response. */
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
