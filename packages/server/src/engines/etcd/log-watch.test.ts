import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { EtcdLogClient } from './etcd-log-client.ts';
import { LogKeys } from './log-keys.ts';
import { LogWatch } from './log-watch.ts';
import type { StoredLog } from './stored-log.ts';

/** A call that etcd, or a proxy in front of it, ends with the status OK. */
class EndedCall extends PassThrough {
  constructor() {
    super({ objectMode: true });
    this.end();
  }

  override write(): boolean {
    return true;
  }

  cancel(): void {
    this.destroy(new Error('cancelled'));
  }
}

test('a watch that etcd ends without an error is restarted', async () => {
  let isClosed = false;
  let watches = 0;
  const again = new Promise<void>((resolve) => {
    const client = {
      get isClosed() {
        return isClosed;
      },
      openWatch: async () => {
        watches += 1;
        if (watches === 3) {
          isClosed = true;
          resolve();
        }
        return { call: new EndedCall(), abandon: () => undefined };
      },
      pause: async () => undefined,
    } as unknown as EtcdLogClient;
    const log = { client, keys: new LogKeys('/tenure') } as unknown as StoredLog;
    new LogWatch(log, 60_000).join();
  });
  await again;
  expect(watches).toBe(3);
}, 5_000);
