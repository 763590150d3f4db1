import { withTemporaryFolder } from '@tenure/test-support';
import { describe, test } from 'vitest';
import type { LogEngine } from '../log-engine.ts';
import { engineConformance } from '../testing/engine-conformance.ts';
import { openFileEngine } from './file-engine.ts';

/** Small segments put file boundaries into every case; the default size is the one in production. */
const sizes = { 'in one segment': undefined, 'in many segments': { maxSegmentBytes: 4096, preallocateBytes: 1024 } };

for (const [how, limits] of Object.entries(sizes)) {
  describe(`the file engine, ${how}`, () => {
    for (const { name, run } of engineConformance({ isDurable: true })) {
      test(name, async () => {
        await withTemporaryFolder(async (folder) => {
          let engine: LogEngine | undefined;
          const dispose = async (): Promise<void> => engine?.close();
          const open = async (): Promise<LogEngine> => (engine = await openFileEngine({ folder, ...limits }));
          await run({ open, dispose }).finally(dispose);
        });
      });
    }
  });
}
