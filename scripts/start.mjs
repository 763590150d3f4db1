// npm start: install what is missing, build, and run the server with a data folder in this directory.
// Arguments are passed on: `npm start -- --listen-client-urls http://127.0.0.1:12379`.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { build, forwardSignals, installWhatIsMissing, programs, requireNode, root } from './prepare.mjs';

const readyText = 'ready to serve client requests';

async function main() {
  requireNode();
  await installWhatIsMissing();
  console.log('Building ...');
  if ((await build()) !== 0) return 1;
  const own = process.argv.slice(2);
  const dataDir = own.some((argument) => argument.startsWith('--data-dir')) ? [] : ['--data-dir', './tenure-data'];
  return serve(['serve', ...dataDir, ...own]);
}

function serve(args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [programs.tenure, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const stopForwarding = forwardSignals(child);
    createInterface({ input: child.stdout }).on('line', (line) => {
      console.log(line);
      if (line.includes(readyText)) console.log(whatNext(line));
    });
    child.on('close', (code) => {
      stopForwarding();
      resolve(code ?? 1);
    });
  });
}

function whatNext(readyLine) {
  const endpoint = /https?:\/\/([^\s,"]+)/.exec(readyLine)?.[1] ?? '127.0.0.1:2379';
  const flag = endpoint === '127.0.0.1:2379' ? '' : ` --endpoints ${endpoint}`;
  return [
    '',
    'Try next, in another terminal of this folder (Ctrl-C stops the server):',
    '',
    `  npx tenure lease grant 60 --id a1${flag}`,
    `  npx tenure put my/key hello --lease a1${flag}`,
    `  npx tenure lease keep-alive a1${flag}`,
    '',
  ].join('\n');
}

process.exitCode = await main();
