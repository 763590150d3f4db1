// Bundles the simulation with the sources of the packages into one file, which any supported Node runs without a build.
// A mutant is an edit of a source text while it is bundled: the checkout stays as it is.
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from '../prepare.mjs';

const packageNames = ['protocol', 'core', 'codec', 'grpc-client', 'grpc-server', 'server', 'cli', 'test-support'];
const source = (path) => join(root, 'packages', path, 'src/index.ts');
const alias = {
  ...Object.fromEntries(packageNames.map((name) => [`@tenure/${name}`, source(name)])),
  tenure: source('client'),
};
/** Inside node_modules, so that the bundle finds the packages that it imports. */
const bundles = join(root, 'node_modules/.cache/tenure-simulation');

let folder;

/** The bundles of this process are removed with it. */
function bundleFolder() {
  if (folder !== undefined) return folder;
  mkdirSync(bundles, { recursive: true });
  folder = mkdtempSync(join(bundles, 'run-'));
  // The server reads its version from the manifest in the parent folder.
  copyFileSync(join(root, 'packages/server/package.json'), join(folder, 'package.json'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function bundleFile(name) {
  return join(bundleFolder(), 'dist', `${name}.mjs`);
}

/** Each edit replaces the text `find` of a `file`, where it occurs exactly once. Throws StaleEdit otherwise. */
export async function bundleWorker(name = 'simulation', edits = []) {
  const file = bundleFile(name);
  const { build, close } = await prepare('simulation/worker.ts', edits);
  try {
    await build.write({ file, format: 'esm', codeSplitting: false, sourcemap: true });
  } finally {
    await close();
  }
  return file;
}

/** A digest of all that is simulated, without comments: the seeds of another digest do not count for this one. */
export async function digestOfSimulation() {
  const { build, close } = await prepare('simulation/simulate.ts', []);
  try {
    const { output } = await build.generate({ format: 'esm', codeSplitting: false, minify: true });
    return createHash('sha256').update(output[0].code).digest('hex').slice(0, 16);
  } finally {
    await close();
  }
}

export class StaleEdit extends Error {}

async function prepare(entry, edits) {
  const pending = new Set(edits);
  const build = await rolldown({
    cwd: root,
    input: join(root, entry),
    platform: 'node',
    resolve: { alias },
    external: (id) =>
      !id.startsWith('.') && !id.startsWith('/') && !id.startsWith('@tenure/') && !/^tenure(\/|$)/.test(id),
    logLevel: 'silent',
    plugins: [
      {
        name: 'edits',
        resolveId: (id) => {
          const part = /^tenure\/(.+)$/.exec(id)?.[1];
          return part === undefined ? null : join(root, 'packages/client/src', part, 'index.ts');
        },
        transform: (code, id) => edited(code, relative(root, id), pending),
        buildEnd: (error) => {
          const [left] = pending;
          if (error == null && left !== undefined) throw new StaleEdit(`${left.file} is not a part of the simulation`);
        },
      },
    ],
  });
  return { build, close: () => build.close() };
}

function edited(code, path, pending) {
  let text = code;
  for (const edit of [...pending].filter(({ file }) => file === path)) {
    text = replaceOnce(text, edit);
    pending.delete(edit);
  }
  return text === code ? null : { code: text };
}

function replaceOnce(text, { file, find, replace }) {
  const parts = text.split(joined(find));
  if (parts.length !== 2) throw new StaleEdit(`the text occurs ${parts.length - 1} times in ${file}`);
  return parts.join(joined(replace));
}

/** A text is a line, or a list of lines. */
function joined(text) {
  return [text].flat().join('\n');
}
