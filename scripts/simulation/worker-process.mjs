import { fork } from 'node:child_process';

/** A worker has not answered in time. */
export class TimeIsUp extends Error {}

/** A child process that runs a bundle of the simulation, one job after the other. */
export class Worker {
  #child;
  #pending;
  #ended;

  /** `output`: 'inherit' shows the trace, 'ignore' does not. */
  constructor(bundle, output = 'inherit') {
    const stdio = ['ignore', output, 'inherit', 'ipc'];
    this.#child = fork(bundle, [], { stdio, execArgv: ['--enable-source-maps'] });
    this.#child.on('message', (outcome) => {
      const pending = this.#pending;
      this.#pending = undefined;
      // A job that fails says why: a scenario that is none, or an error in the simulation itself.
      if (outcome.error === undefined) pending?.resolve(outcome);
      else pending?.reject(new Error(outcome.error));
    });
    this.#ended = new Promise((resolve) => {
      this.#child.on('exit', (code, signal) => {
        resolve();
        this.#pending?.reject(new Error(`the simulation ended with ${signal ?? `code ${code}`}`));
      });
    });
  }

  /** Carries out one job (`simulation/worker.ts` has the kinds). Rejects with TimeIsUp after `limitMs`. */
  ask(job, limitMs = Infinity) {
    return new Promise((resolve, reject) => {
      const tooLate = new TimeIsUp(`no answer within ${Math.round(limitMs / 1_000)} s`);
      const timer = limitMs === Infinity ? undefined : setTimeout(() => reject(tooLate), limitMs);
      const settled = (settle) => (value) => {
        clearTimeout(timer);
        settle(value);
      };
      this.#pending = { resolve: settled(resolve), reject: settled(reject) };
      this.#child.send(job);
    });
  }

  end() {
    this.#child.kill('SIGKILL');
    return this.#ended;
  }
}
