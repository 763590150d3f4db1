import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, freePorts } from '@tenure/test-support';
import { answers } from './answers.ts';
import { MeasuredProcess } from './measured-process.ts';

/** How to start one of the compared servers. */
export interface ServerKind {
  readonly name: string;
  /** With a data folder created for the run and unused ports. */
  command(dataDir: string, clientPort: number, peerPort: number): Command;
}

/** A server as a child process, with its own data folder, which is deleted at the end. */
export class MeasuredServer {
  readonly kind: ServerKind;
  readonly #dataDir: string;
  #process: MeasuredProcess | undefined;
  #address = '';

  private constructor(kind: ServerKind) {
    this.kind = kind;
    this.#dataDir = mkdtempSync(join(tmpdir(), `tenure-bench-${kind.name}-`));
  }

  static async start(kind: ServerKind): Promise<MeasuredServer> {
    const server = new MeasuredServer(kind);
    try {
      await server.#launch();
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  /** host:port of the client API, gRPC and HTTP/1.1 alike. */
  get address(): string {
    return this.#address;
  }

  /** Memory that the process holds, in bytes. */
  rssBytes(): number {
    return this.#process?.rssBytes() ?? 0;
  }

  /**
   * Stops the process regularly, restarts it on the same folder, and returns the time until it answered a read again.
   */
  async restart(): Promise<number> {
    await this.#process?.end();
    const startedMs = performance.now();
    await this.#launch();
    return performance.now() - startedMs;
  }

  async close(): Promise<void> {
    await this.#process?.end();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }

  async #launch(): Promise<void> {
    const [clientPort = 0, peerPort = 0] = await freePorts(2);
    this.#address = `127.0.0.1:${clientPort}`;
    const command = this.kind.command(this.#dataDir, clientPort, peerPort);
    this.#process = await MeasuredProcess.start(command, () => answers(this.#address));
  }
}
