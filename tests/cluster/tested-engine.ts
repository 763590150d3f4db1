import { EtcdProcess, hasEtcd, hasPostgres, PostgresCluster } from '@tenure/test-support';

/** A real engine on this machine, which keeps the log of the servers under test. */
export interface TestedEngine {
  readonly kind: 'postgres' | 'etcd';
  /** Its address, which stays the same after a restart. */
  readonly port: number;
  /** Bytes that occur in every request to append. */
  readonly appendText: string;
  /** The value of --engine to reach it at this port. */
  urlAt(port: number): string;
  /** The options of a server whose log is a separate one, with that name. */
  logNamed(name: string): { readonly engine: string; readonly flags: readonly string[] };
  /** Ends it like a crash: nothing more is written, and the next start recovers. */
  crash(): Promise<void>;
  start(): Promise<void>;
  dispose(): Promise<void>;
}

export function engineOnPostgres(database: PostgresCluster): TestedEngine {
  return {
    kind: 'postgres',
    port: database.port,
    appendText: 'tenure_append',
    urlAt: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    logNamed: (name) => ({ engine: database.url(), flags: ['--engine-schema', name] }),
    crash: () => database.stop('immediate'),
    start: () => database.start(),
    dispose: () => database.dispose(),
  };
}

function engineOnEtcd(etcd: EtcdProcess): TestedEngine {
  return {
    kind: 'etcd',
    port: etcd.port,
    appendText: '/tenure/head',
    urlAt: (port) => `etcd://127.0.0.1:${port}/tenure`,
    logNamed: (name) => ({ engine: `etcd://${etcd.endpoint}/${name}`, flags: [] }),
    crash: () => etcd.kill(),
    start: () => etcd.start(),
    dispose: () => etcd.dispose(),
  };
}

/** Each engine, whether it is installed here, and how to start it. Checked once, and prints why not. */
export const testedEngines: readonly {
  readonly kind: TestedEngine['kind'];
  readonly isThere: boolean;
  readonly start: () => Promise<TestedEngine>;
}[] = [
  {
    kind: 'postgres',
    isThere: hasPostgres(),
    start: async () => engineOnPostgres(await PostgresCluster.create()),
  },
  { kind: 'etcd', isThere: hasEtcd(), start: async () => engineOnEtcd(await EtcdProcess.start()) },
];
