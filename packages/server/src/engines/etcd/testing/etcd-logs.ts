import { openEtcdEngine } from '../etcd-engine.ts';
import type { EtcdEngineOptions } from '../etcd-engine.ts';
import type { LogEngine } from '../../log-engine.ts';

/** Opens engines for a test, and closes them all afterwards. */
export class EtcdLogs {
  readonly #opened: LogEngine[] = [];
  #prefixes = 0;

  newPrefix(): string {
    return `/tests/log-${++this.#prefixes}`;
  }

  async open(endpoint: string, prefix: string, options: Partial<EtcdEngineOptions> = {}): Promise<LogEngine> {
    const engine = await openEtcdEngine({ endpoints: [endpoint], prefix, pollIntervalMs: 300, ...options });
    this.#opened.push(engine);
    return engine;
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((engine) => engine.close()));
  }
}
