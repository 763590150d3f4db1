/** The events of leases, each on the diagnostics channel `tenure:lease:<event>`. */
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
  /** The error, for the events of a failure or a loss. */
  readonly error?: unknown;
}

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

const channels = new Map<LeaseEvent, Channel | undefined>();

/** Cheap while the channel has no subscribers. Does nothing in a runtime without diagnostics channels. */
export function publishLeaseEvent(event: LeaseEvent, message: () => LeaseEventMessage): void {
  if (!channels.has(event)) channels.set(event, channelOf(event));
  const channel = channels.get(event);
  if (channel?.hasSubscribers === true) channel.publish(message());
}

/** Loaded at run time and not imported, so that a bundle for a browser works without it. */
function channelOf(event: LeaseEvent): Channel | undefined {
  const found = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel');
  return found?.channel(`tenure:lease:${event}`);
}
