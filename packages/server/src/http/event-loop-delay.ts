import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

const resolutionMs = 10;
const quantiles = [0.5, 0.9, 0.99, 1];

/** The delay of the event loop since the last scrape: the first metric to check when a lease expired late. */
export class EventLoopDelay {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });

  constructor(registry: Registry) {
    this.#histogram.enable();
    const histogram = this.#histogram;
    const gauge = new Gauge({
      name: 'tenure_event_loop_delay_seconds',
      help: 'Delay of the event loop beyond the requested timer interval, since the last scrape.',
      labelNames: ['quantile'],
      registers: [],
      collect() {
        for (const quantile of quantiles) this.set({ quantile: String(quantile) }, excessSeconds(histogram, quantile));
        histogram.reset();
      },
    });
    registry.registerMetric(gauge);
  }

  /** Idempotent. */
  close(): void {
    this.#histogram.disable();
  }
}

// The histogram holds whole intervals in nanoseconds: the part beyond the resolution is the delay. It is empty at
// first.
function excessSeconds(histogram: IntervalHistogram, quantile: number): number {
  if (histogram.count === 0) return 0;
  return Math.max(0, histogram.percentile(quantile * 100) / 1e9 - resolutionMs / 1000);
}
