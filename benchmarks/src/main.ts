import { parseArgs } from 'node:util';
import { describeMachine } from './machine.ts';
import { tables, writeReport } from './report.ts';
import { makeResults } from './result.ts';
import type { Result } from './result.ts';
import { rowNames } from './scenario.ts';
import type { Contender, Sample, Scenario } from './scenario.ts';
import { allScenarios } from './scenarios/all-scenarios.ts';
import { clusterScenarios } from './scenarios/cluster-scenarios.ts';
import { etcdClusterKind, tenureOnEtcdKind, tenureOnPostgresKind } from './servers/cluster-kinds.ts';
import { MeasuredCluster } from './servers/measured-cluster.ts';
import type { ClusterKind } from './servers/measured-cluster.ts';
import { MeasuredServer } from './servers/measured-server.ts';
import type { ServerKind } from './servers/measured-server.ts';
import { emptyHandlerKind, etcdKind, tenureKind } from './servers/server-kinds.ts';

const options = {
  only: { type: 'string' },
  rounds: { type: 'string' },
  servers: { type: 'string', default: 'etcd,tenure' },
  profile: { type: 'string' },
  quick: { type: 'boolean', default: false },
} as const;

/** Every step has a timeout, and yet a server may hang: no single measurement may take longer than this. */
const measurementTimeoutMs = 15 * 60_000;

interface Settings {
  readonly only: readonly string[];
  readonly servers: readonly string[];
  readonly rounds: number | undefined;
  readonly quick: boolean;
}

interface Suite<Measured> {
  readonly scenarios: readonly Scenario<Measured>[];
  readonly contenders: readonly Contender<Measured>[];
  /** Measured in addition in some scenarios. */
  readonly emptyHandler?: Contender<Measured>;
  readonly withPostgres: boolean;
}

interface Outcome {
  readonly results: readonly Result[];
  readonly failures: number;
}

interface Closable {
  close(): Promise<void>;
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  const settings: Settings = {
    only: values.only?.split(',') ?? [''],
    servers: values.servers.split(','),
    rounds: values.rounds === undefined ? undefined : Number(values.rounds),
    quick: values.quick,
  };
  const names = [...allScenarios.flatMap(rowNames), ...clusterScenarios.flatMap(rowNames)];
  if (!isChosen(names, settings)) {
    throw new Error(`no scenario is named ${values.only}: ${names.join(', ')}`);
  }
  const servers = { scenarios: allScenarios, contenders: [etcdKind, tenureKind(values.profile)].map(serverContender) };
  const single = await measureSuite(
    { ...servers, emptyHandler: serverContender(emptyHandlerKind), withPostgres: false },
    settings,
  );
  const clusterKinds = [etcdClusterKind, tenureOnPostgresKind(values.profile), tenureOnEtcdKind(values.profile)];
  const several = await measureSuite(
    { scenarios: clusterScenarios, contenders: clusterKinds.map(clusterContender), withPostgres: true },
    settings,
  );
  const results = [...single.results, ...several.results];
  console.log(`\n${tables(results)}`);
  // A quick run, or a run of one server alone, only shows that the benchmarks work; its results are not stored.
  const isComparison = ['etcd', 'tenure'].every((name) => settings.servers.includes(name));
  if (!settings.quick && isComparison && results.length > 0) writeReport(results);
  return single.failures + several.failures === 0 ? 0 : 1;
}

function serverContender(kind: ServerKind): Contender<MeasuredServer> {
  return { name: kind.name, start: () => MeasuredServer.start(kind) };
}

function clusterContender(kind: ClusterKind): Contender<MeasuredCluster> {
  return { name: kind.name, start: () => MeasuredCluster.start(kind) };
}

function isChosen(names: readonly string[], { only }: Settings): boolean {
  return only.some((part) => names.some((name) => name.includes(part)));
}

/** Runs the selected scenarios; a failure of one does not stop the others. */
async function measureSuite<Measured extends Closable>(suite: Suite<Measured>, settings: Settings): Promise<Outcome> {
  const asked = suite.contenders.filter(({ name }) => settings.servers.includes(name.toLowerCase()));
  const results: Result[] = [];
  let failures = 0;
  const chosen = suite.scenarios.filter((scenario) => isChosen(rowNames(scenario), settings));
  if (chosen.length === 0) return { results, failures };
  const machine = describeMachine(suite.withPostgres);
  for (const scenario of chosen) {
    const rounds = settings.quick ? 1 : (settings.rounds ?? scenario.rounds);
    const beside = scenario.withEmptyHandler === true && suite.emptyHandler ? [suite.emptyHandler] : [];
    try {
      const samples = await measureAll(scenario, [...asked, ...beside], { rounds, quick: settings.quick });
      results.push(...makeResults(scenario, machine, samples));
    } catch (error) {
      failures += 1;
      console.error(`${scenario.name} failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { results, failures };
}

/** Rounds alternate A B A B, each on new servers, so that a slow minute of the machine affects both. */
async function measureAll<Measured extends Closable>(
  scenario: Scenario<Measured>,
  contenders: readonly Contender<Measured>[],
  { rounds, quick }: { rounds: number; quick: boolean },
): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const contender of contenders) {
      const sample = await measureOnce(scenario, contender, quick);
      samples.get(contender.name)?.push(sample);
      console.log(`${scenario.name} ${round}/${rounds} ${contender.name}: ${describe(sample, scenario.unit)}`);
    }
  }
  return samples;
}

async function measureOnce<Measured extends Closable>(
  scenario: Scenario<Measured>,
  contender: Contender<Measured>,
  quick: boolean,
): Promise<Sample> {
  const { name } = contender;
  const measured = await contender.start();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`not done after ${measurementTimeoutMs / 60_000} minutes`)),
      measurementTimeoutMs,
    );
  });
  try {
    const log = (text: string) => console.log(`${scenario.name} ${name}: ${text}`);
    return await Promise.race([scenario.measure(measured, { quick, log }), timeout]);
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    await measured.close();
  }
}

function describe(sample: Sample, unit: string): string {
  const details = Object.entries(sample.details ?? {}).map(([name, value]) => `${name}: ${value.toFixed(1)}`);
  return [`${sample.value.toFixed(2)} ${unit}`, ...details].join('; ');
}

process.exitCode = await main();
