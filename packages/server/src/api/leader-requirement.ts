import { statusNamed } from './status-of.ts';
import type { Call, DuplexCall, GrpcRoutes, MethodHandler } from '../transport/transport.ts';

/**
 * etcd's behaviour for calls with the metadata `hasleader: true`: on a server without a leader they are refused at
 * once, and open streams are ended when the leader has been lost for too long. Clients send it that prefer another
 * server to waiting.
 */
export class LeaderRequirement {
  readonly #hasLeader: () => boolean;
  readonly #streams = new Set<() => void>();

  constructor(hasLeader: () => boolean) {
    this.#hasLeader = hasLeader;
  }

  /** The same routes with this requirement wrapped around each. */
  guard(routes: GrpcRoutes): GrpcRoutes {
    return new Map([...routes].map(([path, handler]) => [path, this.#guarded(handler)]));
  }

  /** There has been no leader for too long: ends the streams that require one. */
  lost(): void {
    const streams = [...this.#streams];
    this.#streams.clear();
    for (const end of streams) end();
  }

  #guarded(handler: MethodHandler): MethodHandler {
    switch (handler.kind) {
      case 'unary':
        return {
          kind: 'unary',
          handle: (request, call) => {
            if (this.#refuses(call)) throw statusNamed('NoLeader');
            return handler.handle(request, call);
          },
        };
      case 'serverStream':
        return {
          kind: 'serverStream',
          handle: async (request, call, send) => {
            if (this.#refuses(call)) throw statusNamed('NoLeader');
            if (!requiresLeader(call)) await handler.handle(request, call, send);
            else await this.#untilLost(handler.handle(request, call, send));
          },
        };
      case 'bidi':
        return { kind: 'bidi', handle: (call) => this.#stream(call, handler.handle) };
    }
  }

  #stream(call: DuplexCall, handle: (call: DuplexCall) => void): void {
    if (this.#refuses(call)) {
      call.end(statusNamed('NoLeader'));
      return;
    }
    handle(call);
    if (!requiresLeader(call)) return;
    const end = (): void => call.end(statusNamed('NoLeader'));
    const closed = call.onClose;
    this.#streams.add(end);
    call.onClose = () => {
      this.#streams.delete(end);
      closed();
    };
  }

  async #untilLost(sending: Promise<void>): Promise<void> {
    let end: () => void = () => {};
    const lost = new Promise<never>((_, reject) => (end = () => reject(statusNamed('NoLeader'))));
    this.#streams.add(end);
    try {
      await Promise.race([sending, lost]);
    } finally {
      this.#streams.delete(end);
    }
  }

  #refuses(call: Call): boolean {
    return requiresLeader(call) && !this.#hasLeader();
  }
}

/** As in etcd: the first value counts. */
function requiresLeader({ metadata }: Call): boolean {
  const value = metadata['hasleader'];
  if (value === undefined) return false;
  const [first] = Array.isArray(value) ? value : value.split(',');
  return first?.trim() === 'true';
}
