import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CrashRun } from './crash-run.ts';

const seed = Number(process.env['CRASH_SEED'] ?? Date.now() % 1_000_000);

it(
  `loses nothing that was acknowledged in 60 kills under load (CRASH_SEED=${seed})`,
  { timeout: 600_000 },
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tenure-crash-'));
    try {
      const report = await new CrashRun({ seed, kills: 60, dataDir, snapshotCount: 60 }).run();
      expect(report.acknowledgedWrites).toBeGreaterThan(1_000);
      expect(report.abandonedEnded).toBeGreaterThan(0);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
);
