// The common part of `npm start` and `npm test`: install missing dependencies, build, and run programs with this Node.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const oldestNode = [20, 19];

/** Programs of the development dependencies, started with this Node and not with the first one on the PATH. */
export const programs = {
  tsc: join(root, 'node_modules/typescript/bin/tsc'),
  oxlint: join(root, 'node_modules/oxlint/bin/oxlint'),
  oxfmt: join(root, 'node_modules/oxfmt/bin/oxfmt'),
  vitest: join(root, 'node_modules/vitest/vitest.mjs'),
  tenure: join(root, 'packages/cli/bin/tenure.js'),
};

/** Ends the process with one line when Node is too old to run anything here. */
export function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return;
  console.error(`Tenure needs Node ${oldestNode.join('.')} or newer; this is ${process.versions.node}.`);
  process.exit(1);
}

/**
 * Returns the first difference between node_modules and package-lock.json, or undefined. npm keeps a copy of the
 * installed lockfile in node_modules/.package-lock.json; an optional package (a binary for another system) may be
 * absent from it.
 */
export function missingFromNodeModules() {
  const installedFile = join(root, 'node_modules/.package-lock.json');
  if (!existsSync(installedFile)) return 'nothing is installed yet';
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const installed = JSON.parse(readFileSync(installedFile, 'utf8')).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    if (!path.includes('node_modules/')) continue;
    if (entry.link) {
      if (existsSync(join(root, path))) continue;
      return `${entry.resolved} is not linked`;
    }
    const have = installed[path];
    if (have === undefined && entry.optional) continue;
    if (have?.version !== entry.version)
      return `${path.slice(path.indexOf('node_modules/') + 'node_modules/'.length)} ${entry.version} is missing`;
  }
  return undefined;
}

export async function installWhatIsMissing() {
  const reason = missingFromNodeModules();
  if (reason === undefined) return;
  console.log(`Installing dependencies (${reason}) ...`);
  const npm = process.env.npm_execpath;
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
  const code = npm === undefined ? await run('npm', args) : await run(process.execPath, [npm, ...args]);
  if (code !== 0) {
    console.error('npm ci failed: is the npm registry reachable?');
    process.exit(1);
  }
}

/** Compiles the packages, and puts the command into one file. */
export async function build() {
  const code = await run(process.execPath, [programs.tsc, '-b']);
  return code === 0 ? run(process.execPath, [join(root, 'scripts/bundle-command.mjs')]) : code;
}

/**
 * Runs a program to its end with this process's standard streams and returns its exit code (128 + n for a signal, as
 * shells do). Signals are forwarded, so that no child remains when this process is stopped.
 */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
    const stopForwarding = forwardSignals(child);
    child.on('error', (error) => {
      stopForwarding();
      console.error(`${command}: ${error.message}`);
      resolve(127);
    });
    child.on('close', (code, signal) => {
      stopForwarding();
      resolve(code ?? 128 + signalNumber(signal));
    });
  });
}

let interrupted = false;

/** Whether this process was asked to end: then no further step begins. */
export function isInterrupted() {
  return interrupted;
}

/**
 * Forwards SIGTERM and SIGHUP, and SIGINT too unless a terminal has sent it to the child already. A child with its own
 * process group gets none from a terminal: `send` is then given, and forwards all.
 */
export function forwardSignals(child, send) {
  const handlers = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => {
    const handler = () => {
      interrupted = true;
      if (send !== undefined) send(child, signal);
      else if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    };
    process.on(signal, handler);
    return [signal, handler];
  });
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}

export function signalNumber(signal) {
  return { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal] ?? 0;
}
