import { statusOf } from './status-of.ts';
import { GrpcCode, GrpcStatus } from './transport/grpc-status.ts';
import type { DuplexCall, GrpcRoutes, MethodHandler } from './transport/transport.ts';

/** Unary calls that are answered from the memory of the server that is asked, which may be behind another's. */
const unaryPaths: readonly string[] = [
  '/etcdserverpb.Cluster/MemberList',
  '/etcdserverpb.Maintenance/Alarm',
  '/etcdserverpb.Maintenance/Hash',
  '/etcdserverpb.Maintenance/HashKV',
  '/etcdserverpb.Maintenance/Status',
];
const watchPath = '/etcdserverpb.Watch/Watch';
/** So often a reply waits to be no older than its call: an operator wants to know of this server in an outage too. */
const patienceTicks = 5;
const patienceTickMs = 100;
/** Requests of one Watch call that wait; beyond it the call is not read on. */
const maxHeldRequests = 1_000;

/**
 * Where several servers answer from memories of their own, a reply could name a revision that is older than one that
 * its client was told by another server. Before a request is handled whose reply would be such, this server catches up
 * with the log as it was when the request came; so a watch from now on begins no earlier than what its client knows.
 */
export class CurrentReplies {
  readonly #linearize: () => Promise<void> | undefined;
  readonly #patienceTicks: number;

  /** `linearize`: see ReplicaAccess. `ticks`: how often, of 100 ms each, a reply waits to be current. */
  constructor(linearize: () => Promise<void> | undefined, ticks = patienceTicks) {
    this.#linearize = linearize;
    this.#patienceTicks = ticks;
  }

  /** The same routes with this in front of those that need it. */
  guard(routes: GrpcRoutes): GrpcRoutes {
    const guarded = new Map(routes);
    for (const path of [...unaryPaths, watchPath]) {
      const handler = routes.get(path);
      if (handler !== undefined) guarded.set(path, this.#guarded(handler));
    }
    return guarded;
  }

  #guarded(handler: MethodHandler): MethodHandler {
    if (handler.kind === 'bidi') {
      return {
        kind: 'bidi',
        handle: (call) => {
          handler.handle(call);
          new HeldRequests(call, () => this.#caughtUp()).install();
        },
      };
    }
    if (handler.kind === 'serverStream') return handler;
    return {
      kind: 'unary',
      handle: (request, call) => {
        const caughtUp = this.#caughtUp();
        if (caughtUp === undefined) return handler.handle(request, call);
        return caughtUp.then(() => handler.handle(request, call));
      },
    };
  }

  /** Never rejects: when the leader cannot be reached in time, the reply tells what is known here. */
  #caughtUp(): Promise<void> | undefined {
    const current = this.#linearize();
    if (current === undefined) return undefined;
    return new Promise((resolve) => {
      let ticksLeft = this.#patienceTicks;
      // Counted while this process runs: one that was stopped knows the least when it wakes, and has waited longest.
      const timer = setInterval(() => {
        ticksLeft -= 1;
        if (ticksLeft === 0) finish();
      }, patienceTickMs);
      const finish = (): void => {
        clearInterval(timer);
        resolve();
      };
      current.then(finish, finish);
    });
  }
}

/** The requests of one call, each held until the state here is no older than its arrival, and handed on in order. */
class HeldRequests {
  readonly #call: DuplexCall;
  readonly #caughtUp: () => Promise<void> | undefined;
  readonly #handle: (message: Buffer) => void;
  #held: Buffer[] = [];
  #isWaiting = false;
  #isOver = false;

  constructor(call: DuplexCall, caughtUp: () => Promise<void> | undefined) {
    this.#call = call;
    this.#caughtUp = caughtUp;
    this.#handle = call.onMessage;
  }

  install(): void {
    const closed = this.#call.onClose;
    this.#call.onMessage = (message) => this.#receive(message);
    this.#call.onClose = () => {
      this.#isOver = true;
      this.#held = [];
      closed();
    };
  }

  #receive(message: Buffer): void {
    // The bytes are lent for this turn only.
    this.#held.push(Buffer.from(message));
    if (this.#held.length >= maxHeldRequests) this.#call.pause();
    if (!this.#isWaiting) this.#flush();
  }

  #flush(): void {
    while (this.#held.length > 0) {
      const requests = this.#held.length;
      const caughtUp = this.#caughtUp();
      if (caughtUp !== undefined) {
        this.#isWaiting = true;
        void caughtUp.then(() => {
          this.#isWaiting = false;
          this.#handOn(requests);
          this.#flush();
        });
        return;
      }
      this.#handOn(requests);
    }
  }

  /** Those that had come when the question was asked; what came later waits for the next. */
  #handOn(requests: number): void {
    const wasFull = this.#held.length >= maxHeldRequests;
    for (const request of this.#held.splice(0, requests)) {
      if (this.#isOver) return;
      try {
        this.#handle(request);
      } catch (error) {
        this.#call.end(statusOf(error) ?? new GrpcStatus(GrpcCode.internal, 'the request could not be handled'));
      }
    }
    if (wasFull && !this.#isOver) this.#call.resume();
  }
}
