#!/usr/bin/env node
// Committed, so that npm can link it before anything is built.
import { statSync } from 'node:fs';

// Lists of processes show the command line to every user of the machine: a password in it disappears from them.
if (process.argv.some((word) => /^--(?:user|password)\b/.test(word))) process.title = 'tenure';

const packages = ['protocol', 'core', 'codec', 'grpc-client', 'grpc-server', 'server', 'client', 'cli'];

/**
 * In a checkout: the packages in one file, which loads in half of the time, unless one of them was built after it. The
 * compiler writes a `.tsbuildinfo` with each build, and installed packages have none.
 */
function isBundled() {
  const bundledMs = modifiedMs('../dist/bundle.js');
  return packages.every((name) => modifiedMs(`../../${name}/dist/.tsbuildinfo`) < bundledMs);
}

/** 0 for a file that does not exist. */
function modifiedMs(path) {
  return statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

async function loadCli() {
  try {
    return await import(isBundled() ? '../dist/bundle.js' : '../dist/index.js');
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const reason = error.message.split('\n')[0];
    process.stderr.write(`Error: the tenure command is not built yet: run npm run build first (${reason})\n`);
    return undefined;
  }
}

// A reader that closes the pipe early (tenure get ... | head) is not an error.
process.stdout.on('error', (error) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const { stdin, stdout, stderr, env } = process;
const cli = await loadCli();
process.exitCode = cli === undefined ? 1 : await cli.main(process.argv.slice(2), { stdin, stdout, stderr, env });
// A remaining handle, such as one of a failed server, must not keep the process alive. Output is flushed first.
stdout.write('', () => stderr.write('', () => process.exit()));
