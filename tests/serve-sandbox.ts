import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServeProcess } from '@tenure/test-support';
import { type CommandResult, runCommand } from './running-command.ts';

/** Servers and folders that are removed at the end of the test. */
export class ServeSandbox {
  readonly root = mkdtempSync(join(tmpdir(), 'tenure-serve-'));
  readonly #started: ServeProcess[] = [];
  #count = 0;

  /** An unused name. */
  newFolder(): string {
    this.#count += 1;
    return join(this.root, `data-${this.#count}`);
  }

  serve(args: readonly string[], env: Record<string, string> = {}): ServeProcess {
    const server = new ServeProcess(['serve', ...args], env);
    this.#started.push(server);
    return server;
  }

  /** Runs commands against the first address that the server prints, once it is ready. */
  async clientOf(server: ServeProcess): Promise<(...argv: string[]) => Promise<CommandResult>> {
    const [url = ''] = await server.ready();
    return (...argv) => runCommand([...argv, '--endpoints', url]);
  }

  async stopServers(): Promise<void> {
    for (const server of this.#started.splice(0)) await server.end('SIGKILL');
  }

  async remove(): Promise<void> {
    await this.stopServers();
    await rm(this.root, { recursive: true, force: true });
  }
}
