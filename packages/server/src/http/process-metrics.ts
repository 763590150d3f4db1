import { collectDefaultMetrics, Registry } from 'prom-client';

let registry: Registry | undefined;

/**
 * Memory, processor time, garbage collection and the like. They belong to the process and their observers cannot be
 * stopped, so there is one set for any number of servers in it, created at the first scrape.
 */
export function processMetrics(): Registry {
  if (registry === undefined) {
    registry = new Registry();
    collectDefaultMetrics({ register: registry });
    for (const { name } of registry.getMetricsAsArray()) if (isLagSummary(name)) registry.removeSingleMetric(name);
  }
  return registry;
}

/**
 * Minimum, mean and quantiles of the delay of the event loop. Their histogram is empty at the first scrape, and at one
 * that follows another at once: its mean is then NaN, and its minimum the largest possible value.
 * `tenure_event_loop_delay_seconds` reports the same.
 */
function isLagSummary(name: string): boolean {
  return name.startsWith('nodejs_eventloop_lag_') && name !== 'nodejs_eventloop_lag_seconds';
}
