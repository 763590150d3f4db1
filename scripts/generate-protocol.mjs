// Makes packages/protocol/src/gen from packages/protocol/proto. Run by `npm run generate`; the output is committed, so
// that neither a build nor an install needs the generator.
//
// `--out DIR` writes elsewhere (the test that compares does). Exits 0 when it has written all, 3 when buf is not
// installed for this platform, and with buf's own code when buf refuses a file.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const protocol = join(root, 'packages/protocol');
const require = createRequire(import.meta.url);

/** buf's package swaps in its binary when its install script runs; the platform's own package has it in any case. */
function bufBinary() {
  try {
    return require.resolve(`@bufbuild/buf-${process.platform}-${process.arch}/bin/buf`);
  } catch {
    return undefined;
  }
}

function outFolder() {
  const at = process.argv.indexOf('--out');
  const given = at < 0 ? undefined : process.argv[at + 1];
  return given === undefined ? join(protocol, 'src/gen') : resolve(given);
}

function generate(buf, into) {
  const template = {
    version: 'v2',
    plugins: [
      {
        local: 'protoc-gen-es',
        out: into,
        opt: ['target=ts', 'import_extension=ts', 'erasable_syntax=true'],
      },
    ],
  };
  const path = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  return spawnSync(buf, ['generate', 'proto', '--template', JSON.stringify(template)], {
    cwd: protocol,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** Generated files end in `.gen.ts` here, by which every style check recognises them. */
function renamed(text) {
  return text.replace(/(from "\.\/\w+)_pb\.ts"/g, '$1.gen.ts"');
}

function write(from, out) {
  mkdirSync(out, { recursive: true });
  for (const name of readdirSync(out)) {
    if (name.endsWith('.gen.ts')) rmSync(join(out, name));
  }
  for (const name of readdirSync(from)) {
    const text = renamed(readFileSync(join(from, name), 'utf8'));
    writeFileSync(join(out, name.replace(/_pb\.ts$/, '.gen.ts')), text);
  }
}

function main() {
  const buf = bufBinary();
  if (buf === undefined || !existsSync(buf)) {
    console.error(`generate-protocol: there is no buf for ${process.platform}-${process.arch}; run npm install first`);
    return 3;
  }
  const made = mkdtempSync(join(tmpdir(), 'tenure-generate-'));
  try {
    const run = generate(buf, made);
    if (run.error !== undefined) throw run.error;
    if (run.status !== 0) return run.status ?? 1;
    write(made, outFolder());
    return 0;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

process.exitCode = main();
