import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A network between backends and a database, which can be cut or fall silent. */
export class DatabaseProxy {
  readonly #server: Server;
  readonly #links = new Set<{ readonly client: Socket; readonly server: Socket }>();
  #isPaused = false;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    server.on('connection', (client) => this.#join(client, targetPort));
  }

  static async before(targetPort: number): Promise<DatabaseProxy> {
    const server = createServer();
    const proxy = new DatabaseProxy(server, targetPort);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Breaks every connection off; new ones are let through. */
  cut(): void {
    for (const { client, server } of this.#links) {
      client.destroy();
      server.destroy();
    }
  }

  /** Nothing gets through and nobody is told, as with a cable that is out, until the function is called. */
  pause(): () => void {
    this.#isPaused = true;
    for (const { client, server } of this.#links) {
      client.unpipe().pause();
      server.unpipe().pause();
    }
    return () => {
      this.#isPaused = false;
      for (const link of this.#links) pump(link);
    };
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  #join(client: Socket, targetPort: number): void {
    const link = { client: client.setNoDelay(), server: connect(targetPort, '127.0.0.1').setNoDelay() };
    this.#links.add(link);
    const over = (): void => {
      this.#links.delete(link);
      link.client.destroy();
      link.server.destroy();
    };
    for (const socket of [link.client, link.server]) socket.on('error', () => undefined).on('close', over);
    if (!this.#isPaused) pump(link);
  }
}

function pump({ client, server }: { readonly client: Socket; readonly server: Socket }): void {
  client.pipe(server);
  server.pipe(client);
}
