import { connect } from 'node:net';
import { hostileInput, type HostileTarget } from './hostile-input.ts';

/** A client that neither reads to the end nor is disconnected closes after this long. */
const patienceMs = 100;
const holdMs = 20;

export interface HostileRun {
  readonly host: string;
  readonly port: number;
  readonly target: HostileTarget;
  /** Inputs come from the seeds from here on. */
  readonly firstSeed: number;
  /** The number of connections, one per seed. */
  readonly connections: number;
  /** Connections open at once. */
  readonly concurrency: number;
}

/** Sends the inputs of a range of seeds to a server, ignoring its responses. Resolves with the number of inputs. */
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

/** One connection, until the server or the client closes it. Never rejects: a refusal is expected. */
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
    // A zero window stops the messages, not the socket: it is read, so that the server continues.
    socket.resume();
    const finish = (): void => {
      if (ending === 'end') socket.end();
      else if (ending === 'cut') setImmediate(leave);
      else setTimeout(leave, holdMs);
    };
  });
}
