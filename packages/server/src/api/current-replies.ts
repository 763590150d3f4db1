import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';
import { statusOf } from './status-of.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall, GrpcRoutes, MethodHandler } from '../transport/transport.ts';

/** Unary calls that are answered from the memory of the contacted server, which may be behind another's. */
const unaryPaths: readonly string[] = [
  '/etcdserverpb.Cluster/MemberList',
  '/etcdserverpb.Maintenance/Alarm',
  '/etcdserverpb.Maintenance/Hash',
  '/etcdserverpb.Maintenance/HashKV',
  '/etcdserverpb.Maintenance/Status',
];
const watchPath = '/etcdserverpb.Watch/Watch';
/** The number of ticks for which a status reply waits to be current: in an outage an operator needs a reply too. */
const patienceTicks = 5;
const patienceTickMs = 100;
/** Waiting requests of one Watch call, and their bytes; beyond either the call is paused. */
const maxHeldRequests = 1_000;
const maxHeldBytes = 1024 * 1024;

/**
 * Where several servers answer from their own memories, a reply could name a revision older than one that its client
 * received from another server. Before such a request is handled, this server catches up with the log as of the arrival
 * of the request; so a watch from now on begins no earlier than what its client knows.
 */
export class CurrentReplies {
  readonly #clock: Clock;
  readonly #linearize: () => Promise<void> | undefined;
  readonly #patienceTicks: number;

  /** `linearize`: see ReplicaAccess. `ticks`: for how many ticks, of 100 ms each, a reply waits to be current. */
  constructor(clock: Clock, linearize: () => Promise<void> | undefined, ticks = patienceTicks) {
    this.#clock = clock;
    this.#linearize = linearize;
    this.#patienceTicks = ticks;
  }

  /** The same routes with this wrapped around those that need it. */
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
          const held = new HeldRequests(call, () => this.caughtUp());
          handler.handle(call);
          held.install();
        },
      };
    }
    if (handler.kind === 'serverStream') return handler;
    return {
      kind: 'unary',
      handle: (request, call) => {
        const caughtUp = this.caughtUp();
        if (caughtUp === undefined) return handler.handle(request, call);
        return caughtUp.then(() => handler.handle(request, call));
      },
    };
  }

  /**
   * Undefined if the state here is current. Never rejects: when the leader cannot be reached in time, the reply has the
   * state known here.
   */
  caughtUp(): Promise<void> | undefined {
    const current = this.#linearize();
    if (current === undefined) return undefined;
    return new Promise((resolve) => {
      let ticksLeft = this.#patienceTicks;
      // Counted while this process runs: a process that was stopped knows least when it resumes, and has waited
      // longest.
      const cancel = every(this.#clock, patienceTickMs, () => {
        ticksLeft -= 1;
        if (ticksLeft === 0) finish();
      });
      const finish = (): void => {
        cancel();
        resolve();
      };
      current.then(finish, finish);
    });
  }
}

/**
 * The requests of one call, each held until the state here is no older than its arrival, and delivered in order.
 * Reading of the call is paused when too many are held, or by its handler, which then gets none of them.
 */
class HeldRequests {
  readonly #call: DuplexCall;
  readonly #caughtUp: () => Promise<void> | undefined;
  readonly #pauseCall: () => void;
  readonly #resumeCall: () => void;
  #handle: (message: Buffer) => void = () => {};
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The number of requests, from the first on, whose arrival the state covers. */
  #ready = 0;
  #isWaiting = false;
  #isHandingOn = false;
  #isPausedByHandler = false;
  #isOver = false;

  /** Before the handler has the call. */
  constructor(call: DuplexCall, caughtUp: () => Promise<void> | undefined) {
    this.#call = call;
    this.#caughtUp = caughtUp;
    this.#pauseCall = call.pause.bind(call);
    this.#resumeCall = call.resume.bind(call);
    call.pause = () => {
      this.#isPausedByHandler = true;
      this.#pauseCall();
    };
    call.resume = () => {
      this.#isPausedByHandler = false;
      this.#flush();
    };
  }

  /** When the handler has the call. */
  install(): void {
    const call = this.#call;
    const closed = call.onClose;
    this.#handle = call.onMessage;
    call.onMessage = (message) => this.#receive(message);
    call.onClose = () => {
      this.#isOver = true;
      this.#held = [];
      closed();
    };
  }

  get #isFull(): boolean {
    return this.#held.length >= maxHeldRequests || this.#heldBytes >= maxHeldBytes;
  }

  #receive(message: Buffer): void {
    // The bytes are valid in this turn only.
    this.#held.push(Buffer.from(message));
    this.#heldBytes += message.length;
    if (this.#isFull) this.#pauseCall();
    this.#flush();
  }

  #flush(): void {
    if (this.#isHandingOn) return;
    this.#isHandingOn = true;
    while (!this.#isWaiting && !this.#isPausedByHandler && !this.#isOver && this.#held.length > 0) this.#step();
    this.#isHandingOn = false;
    if (!this.#isFull && !this.#isPausedByHandler && !this.#isOver) this.#resumeCall();
  }

  /** Delivers a request that is ready, or starts a catch-up for all held ones: later requests wait for the next one. */
  #step(): void {
    if (this.#ready > 0) {
      this.#handleNext();
      return;
    }
    const requests = this.#held.length;
    const caughtUp = this.#caughtUp();
    if (caughtUp === undefined) {
      this.#ready = requests;
      return;
    }
    this.#isWaiting = true;
    void caughtUp.then(() => {
      this.#isWaiting = false;
      this.#ready = requests;
      this.#flush();
    });
  }

  #handleNext(): void {
    const request = this.#held.shift() as Buffer;
    this.#ready -= 1;
    this.#heldBytes -= request.length;
    try {
      this.#handle(request);
    } catch (error) {
      this.#call.end(statusOf(error) ?? new GrpcStatus(GrpcCode.internal, 'the request could not be handled'));
    }
  }
}
