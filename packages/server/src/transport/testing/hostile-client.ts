import { connect } from 'node:net';
import { hostileInput, type HostileTarget } from './hostile-input.ts';

/** A client that neither reads to the end nor is thrown out leaves by itself after this long. */
const patienceMs = 100;
const holdMs = 20;

export interface HostileRun {
  readonly host: string;
  readonly port: number;
  readonly target: HostileTarget;
  /** Inputs are those of the seeds from here on. */
  readonly firstSeed: number;
  /** Connections made, one a seed. */
  readonly connections: number;
  /** Connections open at once. */
  readonly concurrency: number;
}

/**
 * Plays the inputs of a range of seeds against a server, whatever it answers. Resolves with how many inputs that
 * were.
 */
export async function playHostileInputs(run: HostileRun): Promise<number> {
  let next = run.firstSeed;
  let inputs = 0;
  const end = run.firstSeed + run.connections;
  const player = async (): Promise<void> => {
    while (next < end) {
      const played = await playHostileInput(next++, run);
      inputs += played;
    }
  };
  await Promise.all(Array.from({ length: run.concurrency }, player));
  return inputs;
}

/**
 * One connection, until the server or the client has had enough of it. Never rejects: being refused is what is
 * expected.
 */
function playHostileInput(seed: number, { host, port, target }: HostileRun): Promise<number> {
  const { chunks, count, ending } = hostileInput(seed, target);
  return new Promise((resolve) => {
    const socket = connect({ host, port, noDelay: true });
    const leave = (): void => void socket.destroy();
    const timer = setTimeout(leave, patienceMs);
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(count);
    });
    socket.on('connect', () => {
      chunks.forEach((chunk, i) => socket.write(chunk, i === chunks.length - 1 ? finish : undefined));
    });
    // A zero window is held against the messages, not against the socket: it is read, so that the server goes on.
    socket.resume();
    const finish = (): void => {
      if (ending === 'end') socket.end();
      else if (ending === 'cut') setImmediate(leave);
      else setTimeout(leave, holdMs);
    };
  });
}
