import { ruleOf } from './failure.ts';
import { runSeeds, seedsFrom } from './run-seeds.ts';
import { shrink } from './shrink.ts';
import { scenarioOf, simulateScenario, type Scenario } from './simulate.ts';

/** What the command `npm run simulate` asks of one of its processes. */
type Job =
  | { readonly kind: 'seeds'; readonly from: number; readonly count: number }
  | { readonly kind: 'hunt'; readonly count: number; readonly rules: readonly string[] }
  | { readonly kind: 'shrink'; readonly seed: number; readonly rule: string; readonly maxAttempts: number }
  | { readonly kind: 'replay'; readonly seed?: number; readonly scenario?: Scenario; readonly isTraced: boolean };

/** Errors outside of any promise chain. Each belongs to the seed that is running. */
const strays: Error[] = [];
process.on('unhandledRejection', (error) => strays.push(error as Error));
process.on('uncaughtException', (error) => strays.push(error));

process.on('message', (job: Job) => {
  const answer = (outcome: object): void => void process.send?.(outcome);
  carryOut(job).then(answer, (error: Error) => answer({ error: error.stack ?? error.message }));
});
process.on('disconnect', () => process.exit());

/** The servers refuse and cancel much: to record where costs a tenth of the time. A replay records it. */
function recordStacks(job: Job): void {
  Error.stackTraceLimit = job.kind === 'replay' ? 10 : 0;
}

/** With the processor's time, because other processes may use the same cores. */
async function carryOut(job: Job): Promise<object> {
  recordStacks(job);
  const before = process.cpuUsage();
  const outcome = await outcomeOf(job);
  const { user, system } = process.cpuUsage(before);
  return { ...outcome, seconds: (user + system) / 1e6 };
}

function outcomeOf(job: Job): Promise<object> {
  switch (job.kind) {
    case 'seeds':
      return runSeeds(seedsFrom(job.from, job.count), { strays });
    case 'hunt':
      return hunt(job.count, job.rules);
    case 'shrink':
      return shorten(scenarioOf(job.seed), job.rule, job.maxAttempts);
    case 'replay':
      return replay(job.scenario ?? scenarioOf(job.seed ?? 1), job.isTraced);
  }
}

/** Looks for the first seed that violates one of these rules. */
async function hunt(count: number, rules: readonly string[]): Promise<object> {
  const others: Record<string, number> = {};
  for (let seed = 1; seed <= count; seed += 1) {
    const { failures } = await runSeeds([seed], { strays });
    for (const violation of failures[0]?.violations ?? []) {
      const rule = ruleOf(violation);
      if (rules.includes(rule)) return { found: { seed, violation }, others };
      others[rule] ??= seed;
    }
  }
  return { others };
}

async function shorten(scenario: Scenario, rule: string, maxAttempts: number): Promise<object> {
  const judge = async (candidate: Scenario): Promise<boolean> => {
    const { failures } = await runSeeds([candidate], { strays });
    return failures[0]?.violations.some((violation) => ruleOf(violation) === rule) ?? false;
  };
  return shrink(scenario, judge, maxAttempts);
}

async function replay(scenario: Scenario, isTraced: boolean): Promise<object> {
  const print = isTraced ? (line: string): void => console.log(line) : undefined;
  const report = await simulateScenario(scenario, print === undefined ? {} : { print });
  const crashes = strays.splice(0).map((error) => `failed: ${error.stack}`);
  return { ...report, violations: [...report.violations, ...crashes], scenario };
}
