import { diskScenarioOf, type DiskScenario } from './disk/disk-scenario.ts';
import { simulateDisk } from './disk/simulate-disk.ts';
import { libraryScenarioOf, type LibraryScenario } from './library/library-scenario.ts';
import { simulateLibrary } from './library/simulate-library.ts';
import { serversScenarioOf, type ServersScenario } from './servers-scenario.ts';
import { simulateServers } from './simulate-servers.ts';
import type { SimulationOptions, SimulationReport } from './simulation-report.ts';
import { namedRandom } from './world/named-random.ts';

export type Scenario = ServersScenario | LibraryScenario | DiskScenario;

/** The share of a simulated disk among the other seeds. */
const diskShare = 0.2;

/** Every fourth seed runs the library. */
export function scenarioOf(seed: number): Scenario {
  if (seed % 4 === 0) return libraryScenarioOf(seed);
  return namedRandom(seed, 'shape').next() < diskShare ? diskScenarioOf(seed) : serversScenarioOf(seed);
}

/** Runs one seed. */
export function simulate(seed: number, options: SimulationOptions = {}): Promise<SimulationReport> {
  return simulateScenario(scenarioOf(seed), options);
}

export function simulateScenario(scenario: Scenario, options: SimulationOptions = {}): Promise<SimulationReport> {
  switch (scenario.shape) {
    case 'servers':
      return simulateServers(scenario, options);
    case 'library':
      return simulateLibrary(scenario, options);
    case 'disk':
      return simulateDisk(scenario, options);
  }
}
