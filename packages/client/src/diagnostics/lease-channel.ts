/** What is told of leases, each on the diagnostics channel `tenure:lease:<event>`. */
export type LeaseEvent =
  | 'acquired'
  | 'waiting'
  | 'renewed'
  | 'renew-failed'
  | 'lost'
  | 'released'
  | 'release-failed'
  | 'listener-failed';

/** The message of every event. */
export interface LeaseEventMessage {
  readonly name: string;
  readonly holder: string;
  /** The kind of backend. */
  readonly backend: string;
  /** Undefined while waiting. */
  readonly fencingToken: bigint | undefined;
  /** What went wrong, of the events that tell of a failure or a loss. */
  readonly error?: unknown;
}

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

const channels = new Map<LeaseEvent, Channel | undefined>();

/** Costs next to nothing while nobody listens. Does nothing in a runtime without diagnostics channels. */
export function tellLeaseEvent(event: LeaseEvent, message: () => LeaseEventMessage): void {
  if (!channels.has(event)) channels.set(event, channelOf(event));
  const channel = channels.get(event);
  if (channel?.hasSubscribers === true) channel.publish(message());
}

/** Asked for at run time and not imported, so that a bundle for a browser can do without it. */
function channelOf(event: LeaseEvent): Channel | undefined {
  const found = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel');
  return found?.channel(`tenure:lease:${event}`);
}
