import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createLeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';

describe('a read-write lock', () => {
  test('lets many read or one write, in the order of coming', async () => {
    const clock = new FakeClock();
    await using leases = createLeaseManager({ backend: memoryBackend({ clock }), clock });
    const lock = leases.readWriteLock('ledger');
    const first = await lock.read();
    const second = await lock.read();
    assert.equal(await lock.tryWrite(), null);
    const writing = lock.write();
    await clock.advance(0);
    // A reader that comes after a writer waits for it, so that readers can't keep writers out.
    assert.equal(await lock.tryRead(), null);
    const reading = lock.read();
    await first.release();
    await clock.advance(100);
    await second.release();
    await clock.advance(100);
    const written = await writing;
    assert.equal(second.signal.aborted, false);
    await written.release();
    await clock.advance(0);
    const third = await reading;
    assert.ok(third.fencingToken > written.fencingToken && written.fencingToken > second.fencingToken);
    assert.equal(third.name, 'ledger');
    assert.equal(third.entry.name, 'rw/ledger');
  });

  test('has nothing to do with a lease or semaphore of the same name', async () => {
    const clock = new FakeClock();
    await using leases = createLeaseManager({ backend: memoryBackend({ clock }), clock });
    await leases.acquire('ledger');
    await leases.semaphore('ledger', 1).acquire();
    assert.ok((await leases.readWriteLock('ledger').tryWrite())?.isHeld());
  });
});
