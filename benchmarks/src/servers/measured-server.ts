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
  #startMs = 0;

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

  /** Processor time of the process so far, in ms. */
  cpuMs(): number {
    return this.#process?.cpuMs() ?? 0;
  }

  /** The time from the last start of the process until it answered a read. */
  get startMs(): number {
    return this.#startMs;
  }

  /** Ends the process by the signal, and restarts it on the same folder; `startMs` is then that of this start. */
  async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#process?.end(signal);
    await this.#launch();
  }

  async close(): Promise<void> {
    await this.#process?.end();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }

  async #launch(): Promise<void> {
    const [clientPort = 0, peerPort = 0] = await freePorts(2);
    this.#address = `127.0.0.1:${clientPort}`;
    const command = this.kind.command(this.#dataDir, clientPort, peerPort);
    const beganMs = performance.now();
    this.#process = await MeasuredProcess.start(command, () => answers(this.#address));
    this.#startMs = performance.now() - beganMs;
  }
}
