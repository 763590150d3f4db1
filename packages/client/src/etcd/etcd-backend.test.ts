import assert from 'node:assert/strict';
import { afterEach, describe, test, vi } from 'vitest';
import { EtcdClient } from './client/etcd-client.ts';
import type { WatchBatch } from './client/watcher.ts';
import { EtcdError } from './connection/etcd-error.ts';
import { etcdBackend } from './etcd-backend.ts';

/** As one whose user was taken away. */
class DeniedClient extends EtcdClient {
  watches = 0;

  override async *watch(): AsyncGenerator<WatchBatch, void, undefined> {
    this.watches++;
    yield await Promise.reject(new EtcdError('denied', 'here', 'etcdserver: permission denied'));
  }
}

describe('a line of etcd that is watched', () => {
  afterEach(() => void vi.useRealTimers());

  test('is watched anew for as long as that is refused, without a word on the console', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const warnings: string[] = [];
    const warned = (warning: Error): unknown => warnings.push(warning.message);
    process.on('warning', warned);
    const client = new DeniedClient({ endpoints: '127.0.0.1:1' });
    const backend = etcdBackend({ client });
    let hints = 0;
    const watch = backend.watch('job', () => hints++);
    for (let second = 0; second < 20; second++) await vi.advanceTimersByTimeAsync(1_000);
    assert.ok(client.watches >= 20);
    assert.equal(hints, client.watches);
    assert.deepEqual(warnings, []);
    watch.close();
    const before = client.watches;
    await vi.advanceTimersByTimeAsync(10_000);
    assert.equal(client.watches, before);
    process.off('warning', warned);
    await backend.close();
    client.close();
  });
});
