// Runs a program for a part of the tests, and ends it with all its children when it takes far too long.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { forwardSignals, root, signalNumber } from './prepare.mjs';

/** A part that takes this many times its share is stuck, or the machine is too slow for tests. */
const sharesMax = 3;
const lastWordsMs = 2_000;
const graceMs = 10_000;

/** The exit codes of a part that was stopped: it took too long, or the time of the whole run was up. */
const stoppedCode = 124;
export const timeIsUpCode = 125;

/**
 * Resolves with the exit code (128 + n for a signal), with `stoppedCode` when the part took three times its share, or
 * with `timeIsUpCode` at `untilMs` of performance.now(). `lastSignal` asks the program for a last report before it is
 * stopped. It has its own process group, so that no child of it remains. `output` is a file for its output.
 */
export function runLimited({ name, shareSeconds, untilMs = Infinity, command, args, env = {}, output, lastSignal }) {
  return new Promise((resolve) => {
    const file = output === undefined ? undefined : openSync(output, 'w');
    const stdio = file === undefined ? 'inherit' : ['ignore', file, file];
    const child = spawn(command, args, { cwd: root, stdio, env: { ...process.env, ...env }, detached: true });
    const stopForwarding = forwardSignals(child, signalGroup);
    let stopped;
    const limitMs = shareSeconds * sharesMax * 1_000;
    const leftMs = untilMs - performance.now();
    const stop = () => {
      stopped = leftMs < limitMs ? timeIsUpCode : stoppedCode;
      if (stopped === stoppedCode) {
        const limit = `${sharesMax} times its share of ${shareSeconds} s`;
        console.error(`\nSTOPPED  ${name}: it took ${limit}. It is stuck, or this machine is too slow or too busy.`);
        if (lastSignal !== undefined) child.kill(lastSignal);
      }
      timers.push(setTimeout(signalGroup, lastWordsMs, child, 'SIGTERM'));
      timers.push(setTimeout(signalGroup, lastWordsMs + graceMs, child, 'SIGKILL'));
    };
    const timers = [setTimeout(stop, Math.max(0, Math.min(limitMs, leftMs)))];
    const ended = (code) => {
      for (const timer of timers) clearTimeout(timer);
      stopForwarding();
      if (file !== undefined) closeSync(file);
      // Processes left by a test are ended as well.
      signalGroup(child, 'SIGKILL');
      resolve(stopped ?? code);
    };
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      ended(127);
    });
    child.on('close', (code, signal) => ended(code ?? 128 + signalNumber(signal)));
  });
}

function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
