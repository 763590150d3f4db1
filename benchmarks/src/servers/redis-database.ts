import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@tenure/test-support';
import { Redis } from 'ioredis';
import { MeasuredProcess } from './measured-process.ts';

/** A Redis with its defaults, which replies before it writes to the disk. */
export class RedisDatabase {
  readonly port: number;
  readonly #folder: string;
  readonly #process: MeasuredProcess;

  private constructor(port: number, folder: string, process: MeasuredProcess) {
    this.port = port;
    this.#folder = folder;
    this.#process = process;
  }

  static async start(): Promise<RedisDatabase> {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-bench-redis-'));
    try {
      const port = await freePort();
      const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder];
      const command = { program: 'redis-server', args };
      return new RedisDatabase(port, folder, await MeasuredProcess.start(command, () => accepts(port)));
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#process.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function accepts(port: number): Promise<boolean> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.ping()) === 'PONG';
  } finally {
    client.disconnect();
  }
}
