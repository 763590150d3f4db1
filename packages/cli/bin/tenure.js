#!/usr/bin/env node
// Committed, so that npm can link it before anything is built.

async function loadCli() {
  try {
    return await import('../dist/index.js');
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const reason = error.message.split('\n')[0];
    process.stderr.write(`Error: the tenure command is not built yet: run npm run build first (${reason})\n`);
    return undefined;
  }
}

// A reader that has seen enough (tenure get ... | head) is no fault.
process.stdout.on('error', (error) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const { stdin, stdout, stderr, env } = process;
const cli = await loadCli();
process.exitCode = cli === undefined ? 1 : await cli.main(process.argv.slice(2), { stdin, stdout, stderr, env });
// What still runs, such as a server that failed, must not keep the process; what was written goes out first.
stdout.write('', () => stderr.write('', () => process.exit()));
