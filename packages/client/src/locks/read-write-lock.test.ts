import { describe, expect, test } from 'vitest';
import { createLeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';

describe('a read-write lock', () => {
  test('allows many readers or one writer, in first-come order', async () => {
    const clock = new FakeClock();
    await using leases = createLeaseManager({ backend: memoryBackend({ clock }), clock });
    const lock = leases.readWriteLock('ledger');
    const first = await lock.read();
    const second = await lock.read();
    expect(await lock.tryWrite()).toBe(null);
    const writing = lock.write();
    await clock.advance(0);
    // A reader that arrives after a writer waits for it, so that readers can't starve writers.
    expect(await lock.tryRead()).toBe(null);
    const reading = lock.read();
    await first.release();
    await clock.advance(100);
    await second.release();
    await clock.advance(100);
    const written = await writing;
    expect(second.signal.aborted).toBe(false);
    await written.release();
    await clock.advance(0);
    const third = await reading;
    expect(third.fencingToken).toBeGreaterThan(written.fencingToken);
    expect(written.fencingToken).toBeGreaterThan(second.fencingToken);
    expect(third.name).toBe('ledger');
    expect(third.entry.name).toBe('rw/ledger');
  });

  test('is independent of a lease or semaphore of the same name', async () => {
    const clock = new FakeClock();
    await using leases = createLeaseManager({ backend: memoryBackend({ clock }), clock });
    await leases.acquire('ledger');
    await leases.semaphore('ledger', 1).acquire();
    expect((await leases.readWriteLock('ledger').tryWrite())?.isHeld()).toBe(true);
  });
});
