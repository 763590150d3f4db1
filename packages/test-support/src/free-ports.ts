import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that systems give to outgoing connections and to listeners at port 0 (from 32768 on Linux, from 49152
 * on macOS): such a port could be taken between this check and the start of the program that gets it.
 */
const firstPort = 20_000;
const lastPort = 32_000;

/** Ports of 127.0.0.1 that no program uses, all different: for servers that cannot choose one. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  while (servers.size < count) {
    const port = randomInt(firstPort, lastPort);
    const server = servers.has(port) ? undefined : await listenAt(port);
    if (server !== undefined) servers.set(port, server);
  }
  await Promise.all(Array.from(servers.values(), (server) => new Promise((resolve) => server.close(resolve))));
  return [...servers.keys()];
}

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** Undefined if another program has the port. */
async function listenAt(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return undefined;
    throw error;
  }
}
