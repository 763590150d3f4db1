// Puts the built command into one file, which starts in half of the time: most of a start is opening four hundred
// files.
//   node scripts/bundle-command.mjs [FILE]
// By default packages/cli/dist/bundle.js: the command uses it unless a package was built later.
import { mkdirSync, renameSync, utimesSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './prepare.mjs';

const file = process.argv[2] ?? join(root, 'packages/cli/dist/bundle.js');
/** A start at the same time finds the former file or the new one, whole. */
const unfinished = `${file}.${process.pid}`;
const begun = new Date();

mkdirSync(dirname(file), { recursive: true });
const bundle = await rolldown({
  input: join(root, 'packages/cli/dist/index.js'),
  platform: 'node',
  external: ['pg-native'],
});
await bundle.write({ file: unfinished, format: 'esm', codeSplitting: false });
await bundle.close();
// What is built while the packages are read is newer than the bundle.
utimesSync(unfinished, begun, begun);
renameSync(unfinished, file);
