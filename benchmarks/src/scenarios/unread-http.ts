import { measureUnreadWaves } from '../load/unread-waves.ts';
import type { Scenario } from '../scenario.ts';
import { httpGetHead } from '../wire/raw-connection.ts';

const requestsPerConnection = 1000;
const waveMs = 3000;

/** Clients request the metrics over HTTP/2, many times, and read nothing. */
export const unreadHttp: Scenario = {
  name: 'unread-http',
  work: '20,000 unread HTTP/2 replies to GET /metrics, three times: peak memory above that of the idle server',
  unit: 'MiB',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 384 },
  measure(server, { quick, log }) {
    const [waves, connections] = quick ? [1, 4] : [3, 20];
    const head = httpGetHead('/metrics');
    return measureUnreadWaves(server, {
      waves,
      connections,
      waveMs,
      requestsOf: (client) => client.calls(requestsPerConnection, head, Buffer.alloc(0)),
      log,
    });
  },
};
