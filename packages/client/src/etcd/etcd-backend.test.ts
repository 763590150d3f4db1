import { afterEach, describe, expect, test, vi } from 'vitest';
import { EtcdClient } from './client/etcd-client.ts';
import type { WatchBatch } from './client/watcher.ts';
import { EtcdError } from './connection/etcd-error.ts';
import { etcdBackend } from './etcd-backend.ts';

/** Like the watch of a user that was removed. */
class DeniedClient extends EtcdClient {
  watches = 0;

  override async *watch(): AsyncGenerator<WatchBatch, void, undefined> {
    this.watches++;
    yield await Promise.reject(new EtcdError('denied', 'here', 'etcdserver: permission denied'));
  }
}

describe('a watched queue in etcd', () => {
  afterEach(() => void vi.useRealTimers());

  test('is watched again as long as the watch is refused, without output on the console', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const warnings: string[] = [];
    const warned = (warning: Error): unknown => warnings.push(warning.message);
    process.on('warning', warned);
    const client = new DeniedClient({ endpoints: '127.0.0.1:1' });
    const backend = etcdBackend({ client });
    let hints = 0;
    const watch = backend.watch('job', () => hints++);
    for (let second = 0; second < 20; second++) await vi.advanceTimersByTimeAsync(1_000);
    expect(client.watches).toBeGreaterThanOrEqual(20);
    expect(hints).toBe(client.watches);
    expect(warnings).toEqual([]);
    watch.close();
    const before = client.watches;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(client.watches).toBe(before);
    process.off('warning', warned);
    await backend.close();
    client.close();
  });
});
