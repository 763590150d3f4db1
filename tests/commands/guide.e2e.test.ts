import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ChildProgram } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { startTenure } from '../../conformance/servers/tenure-server.ts';

const guide = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
const command = fileURLToPath(new URL('../../packages/cli/bin/tenure.js', import.meta.url));

/** Runs a command that has no end of its own, and stops it like Ctrl-C after its first output. */
const untilItSpeaks = `
until_it_speaks() {
  local said; said=$(mktemp -p .)
  "$@" > "$said" & local pid=$!
  until [ -s "$said" ]; do kill -0 $pid; sleep 0.05; done
  kill -INT $pid; wait $pid || true
  cat "$said"
}`;

/** The examples as one script. With job control a background process reacts to SIGINT. */
function scriptOfGuide(): string {
  const blocks = [...guide.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  const lines = blocks.join('').split('\n');
  const endless = /^(tenure .*?)(&?)\s+# until stopped.*$/;
  const begin = ['set -em', untilItSpeaks];
  return [...begin, ...lines].map((line) => line.replace(endless, 'until_it_speaks $1 $2')).join('\n');
}

test('every example of the guide to the commands works, in order', { timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-guide-'));
  const server = await startTenure();
  try {
    mkdirSync(join(folder, 'bin'));
    symlinkSync(command, join(folder, 'bin/tenure'));
    const path = [join(folder, 'bin'), process.env['PATH']].join(delimiter);
    const env = { ...process.env, PATH: path, TENURE_ENDPOINTS: server.address };
    const script = new ChildProgram({ program: 'bash', args: ['-c', scriptOfGuide()], cwd: folder, env });
    const { code, out, err } = await script.ended;
    expect(code, `${out}\n${err}`).toBe(0);
    expect(out).toContain('nightly is led by 10.0.0.7:8080');
    expect(out).toContain('SUCCESS');
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
