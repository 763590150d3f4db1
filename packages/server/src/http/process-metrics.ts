import { collectDefaultMetrics, Registry } from 'prom-client';

let registry: Registry | undefined;

/**
 * Memory, processor time, garbage collection and the like. They belong to the process and their observers cannot
 * be stopped, so there is one set however many servers run in it, made at the first scrape.
 */
export function processMetrics(): Registry {
  if (registry === undefined) {
    registry = new Registry();
    collectDefaultMetrics({ register: registry });
  }
  return registry;
}
