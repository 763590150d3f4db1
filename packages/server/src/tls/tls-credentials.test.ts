import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createTestTls } from '../transport/testing/test-tls.ts';
import type { TlsCredentials } from './tls-credentials.ts';

const tls = createTestTls();
afterAll(() => tls.close());

const one = tls.authority.issue('one');
const two = tls.authority.issue('two');
/** A look at the files comes each second. */
const soon = { timeout: 5000, interval: 20 };

function shown(credentials: TlsCredentials): string {
  return String(credentials.context.cert);
}

/** A folder with a certificate and its key. */
function folderWith(name: string, from = one): string {
  const folder = join(tls.folder, name);
  mkdirSync(folder);
  copyFileSync(from.certFile, join(folder, 'tls.crt'));
  copyFileSync(from.keyFile, join(folder, 'tls.key'));
  return folder;
}

function filesIn(folder: string): { certFile: string; keyFile: string } {
  return { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
}

describe('new files are used', () => {
  test('that were written over the old ones, certificate and key one after the other', async () => {
    const files = filesIn(folderWith('written'));
    const credentials = await tls.open(files);
    const changes: unknown[] = [];
    credentials.onChange(({ cert }) => changes.push(cert));
    tls.logged.length = 0;
    writeFileSync(files.certFile, readFileSync(two.certFile));
    writeFileSync(files.keyFile, readFileSync(two.keyFile));
    await expect.poll(() => shown(credentials), soon).toBe(readFileSync(two.certFile, 'latin1'));
    expect(changes).toEqual([readFileSync(two.certFile, 'latin1')]);
    expect(tls.logged).toEqual(['the TLS files have changed: new connections use them']);
  });

  test('behind a symbolic link that was replaced, as Kubernetes does', async () => {
    const folder = join(tls.folder, 'mounted');
    mkdirSync(folder);
    symlinkSync(folderWith('before'), join(folder, '..data'));
    for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(folder, name));
    const credentials = await tls.open(filesIn(folder));
    symlinkSync(folderWith('after', two), join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await expect.poll(() => shown(credentials), soon).toBe(readFileSync(two.certFile, 'latin1'));
  });
});

describe('files that cannot be used leave the earlier ones in use, with one line in the log', () => {
  const unusable = 'the TLS files have changed and cannot be used: the earlier ones stay in use';

  test.each([
    ['a broken certificate', ({ certFile }: { certFile: string }) => writeFileSync(certFile, 'broken')],
    ['no key', ({ keyFile }: { keyFile: string }) => rmSync(keyFile)],
    ['a key of another certificate', ({ keyFile }: { keyFile: string }) => copyFileSync(two.keyFile, keyFile)],
  ])('%s', async (what, spoil) => {
    const files = filesIn(folderWith(what.replaceAll(' ', '-')));
    const credentials = await tls.open(files);
    tls.logged.length = 0;
    spoil(files);
    await expect.poll(() => tls.logged, soon).toEqual([unusable]);
    expect(shown(credentials)).toBe(readFileSync(one.certFile, 'latin1'));
    // Another change that does not help is not reported again, and one that helps is used.
    writeFileSync(files.certFile, 'broken otherwise');
    await new Promise<void>((resolve) => setTimeout(resolve, 2500));
    expect(tls.logged).toEqual([unusable]);
    copyFileSync(two.certFile, files.certFile);
    copyFileSync(two.keyFile, files.keyFile);
    await expect.poll(() => shown(credentials), soon).toBe(readFileSync(two.certFile, 'latin1'));
  });
});

test.each([
  ['a missing certificate', { certFile: '/there/is/none' }, /ENOENT.*\/there\/is\/none/],
  ['a key of another certificate', { keyFile: two.keyFile }, /are no certificate with its key/],
  ['a broken authority', { trustedCaFile: one.keyFile }, /holds no certificate in PEM/],
  ['a broken list of revocations', { trustedCaFile: tls.authority.caFile, crlFile: one.keyFile }, /cannot be set up/],
])('does not open with %s', async (_what, options, message) => {
  await expect(tls.open(options)).rejects.toThrow(message);
});
