import type { ServerOptions } from 'node:http2';
import type { TransportLimits } from './transport-limits.ts';

/** Options that newer versions of Node know; older ones ignore them, and limit resets by nghttp2's own default. */
interface StreamResetOptions {
  readonly streamResetBurst: number;
  readonly streamResetRate: number;
}

/** The limits as options of node:http2. */
export function http2Options(limits: TransportLimits): ServerOptions & StreamResetOptions {
  return {
    maxSessionMemory: limits.maxSessionMemoryMiB,
    maxHeaderListPairs: limits.maxHeaderPairs,
    maxSettings: limits.maxSettingsEntries,
    maxOutstandingPings: 10,
    maxSessionInvalidFrames: limits.maxInvalidFrames,
    maxSessionRejectedStreams: limits.maxRejectedStreams,
    unknownProtocolTimeout: limits.prefaceTimeoutMs,
    streamResetBurst: limits.streamResetBurst,
    streamResetRate: limits.streamResetsPerSecond,
    settings: {
      enablePush: false,
      initialWindowSize: limits.streamWindowBytes,
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
    },
  };
}
