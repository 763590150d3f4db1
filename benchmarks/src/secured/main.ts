import { runH2load } from '../load/h2load.ts';
import { median } from '../load/percentile.ts';
import { methods, putRequest, rangeRequest, revisionOf } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { type commands, SecuredServer } from './secured-server.ts';

// npm run bench -- secured: Put and Range without and with TLS and authentication, Tenure beside etcd. Prints a table.

const key = 'k'.repeat(16);
const requests = process.argv.includes('--quick') ? 4_000 : 40_000;
const asked = process.argv.indexOf('--rounds');
const rounds = asked > 0 ? Number(process.argv[asked + 1]) : process.argv.includes('--quick') ? 1 : 3;

interface Way {
  readonly name: string;
  readonly isTls: boolean;
  readonly hasAuth: boolean;
}

const ways: readonly Way[] = [
  { name: 'plain', isTls: false, hasAuth: false },
  { name: 'TLS', isTls: true, hasAuth: false },
  { name: 'authentication', isTls: false, hasAuth: true },
  { name: 'TLS and authentication', isTls: true, hasAuth: true },
];

const loads = { Put: methods.put, Range: methods.range } as const;
type System = keyof typeof commands;

interface Sample {
  readonly system: System;
  readonly load: keyof typeof loads;
  readonly way: string;
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** Each load after a fifth of it that warms up. A server of its own, since what it did before changes its speed. */
async function measure(system: System, way: Way): Promise<Sample[]> {
  const server = await SecuredServer.start(system);
  const samples: Sample[] = [];
  try {
    const token = way.hasAuth ? await server.enableAuth() : undefined;
    for (const load of ['Put', 'Range'] as const) {
      const message = load === 'Put' ? putRequest(key, 'v'.repeat(64)) : rangeRequest(key);
      const target = { address: way.isTls ? server.tls : server.plain, isTls: way.isTls, path: loads[load], message };
      const before = await revision(server, token);
      await runH2load({ ...target, token, requests: requests / 5 });
      const beganMs = server.cpuMs();
      const { perSecond, dataBytes } = await runH2load({ ...target, token, requests });
      const cpuUs = ((server.cpuMs() - beganMs) * 1000) / requests;
      const written = (await revision(server, token)) - before;
      const isDone = load === 'Put' ? written === (requests * 6) / 5 : dataBytes > requests * 100;
      if (!isDone) throw new Error(`${system}, ${load}, ${way.name}: the load did not do its work`);
      samples.push({ system, load, way: way.name, perSecond, cpuUs });
    }
  } finally {
    await server.close();
  }
  return samples;
}

async function revision(server: SecuredServer, token: string | undefined): Promise<number> {
  const connection = await GrpcConnection.open(server.plain, token === undefined ? {} : { token });
  try {
    return revisionOf(await connection.unary(methods.range, rangeRequest(key)));
  } finally {
    connection.close();
  }
}

const samples: Sample[] = [];
for (let round = 0; round < rounds; round += 1) {
  for (const way of ways) {
    for (const system of ['etcd', 'Tenure'] as const) samples.push(...(await measure(system, way)));
  }
}

/** The median over the rounds. */
function figure(system: System, load: string, way: string, read: (sample: Sample) => number): number {
  const of = samples.filter((sample) => sample.system === system && sample.load === load && sample.way === way);
  return median(of.map(read));
}

const lines = [
  '| load | way | etcd 1/s | Tenure 1/s | ratio | of plain | etcd µs | Tenure µs |',
  '|---|---|---|---|---|---|---|---|',
];
for (const load of ['Put', 'Range'] as const) {
  const ratioOf = (way: string): number =>
    figure('Tenure', load, way, ({ perSecond }) => perSecond) / figure('etcd', load, way, ({ perSecond }) => perSecond);
  for (const { name } of ways) {
    const rates = (['etcd', 'Tenure'] as const).map((system) => figure(system, load, name, (one) => one.perSecond));
    const costs = (['etcd', 'Tenure'] as const).map((system) => figure(system, load, name, (one) => one.cpuUs));
    const ratio = ratioOf(name);
    const cells = [load, name, ...rates.map((rate) => rate.toFixed(0)), ratio.toFixed(2)];
    lines.push(
      `| ${[...cells, (ratio / ratioOf('plain')).toFixed(2), ...costs.map((us) => us.toFixed(0))].join(' | ')} |`,
    );
  }
}
process.stdout.write(`${lines.join('\n')}\n`);
