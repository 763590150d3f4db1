import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, inject, test } from 'vitest';
import { testedEngines } from '../cluster/tested-engine.ts';
import { runAccess } from './access-run.ts';

const kills = { commit: 1, ci: 1, soak: 20 }[inject('effort')];
const folder = mkdtempSync(join(tmpdir(), 'tenure-signed-'));
const secret = join(folder, 'secret');

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.for(testedEngines)(
  'signed tokens on $kind are judged by the changes before them',
  async ({ isThere, start }, t) => {
    t.skip(!isThere);
    writeFileSync(secret, 'a secret of thirty-two bytes or more');
    const engine = await start();
    try {
      const flags = ['--auth-token', `jwt,priv-key=${secret},sign-method=HS256,ttl=10m`];
      const log = engine.logNamed('signed');
      const run = { engine: log.engine, flags: [...log.flags, ...flags], kills, seed: inject('seed') };
      await expect(runAccess(run)).resolves.toBeUndefined();
    } finally {
      await engine.dispose();
    }
  },
);
