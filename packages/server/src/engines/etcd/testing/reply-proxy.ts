import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A network before a server whose connections can be cut after a request has got through and before its reply has. */
export class ReplyProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [client: Socket, server: Socket]>();
  #holdsReplies = false;
  #isAway = false;

  private constructor(server: Server, target: () => number) {
    this.#server = server;
    server.on('connection', (client) => this.#join(client, target()));
  }

  /** `target` is asked for the port at each connection. */
  static async before(target: () => number): Promise<ReplyProxy> {
    const server = createServer();
    const proxy = new ReplyProxy(server, target);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get endpoint(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Requests go on getting through; what the server says stays here, until the connections are cut. */
  holdReplies(): void {
    this.#holdsReplies = true;
    for (const [client, server] of this.#pairs) server.unpipe(client).resume();
  }

  /** Breaks every connection off; new ones get through in both directions, unless the server is away. */
  cut(): void {
    this.#holdsReplies = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Breaks every connection off, and every new one too, until `comeBack`. */
  goAway(): void {
    this.#isAway = true;
    this.cut();
  }

  comeBack(): void {
    this.#isAway = false;
  }

  async close(): Promise<void> {
    this.goAway();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, port: number): void {
    if (this.#isAway) {
      client.destroy();
      return;
    }
    const server = connect(port, '127.0.0.1').setNoDelay();
    const pair = [client.setNoDelay(), server] as const;
    this.#pairs.add(pair);
    const over = (): void => {
      this.#pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on('error', () => undefined).on('close', over);
    client.pipe(server);
    if (this.#holdsReplies) server.resume();
    else server.pipe(client);
  }
}
