import {
  type AccessCheck,
  anonymous,
  identityRefusal,
  oldToken,
  type Requester,
  type StateMachine,
} from '@tenure/core';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { type Authenticator, carriesToken } from '../auth/authenticator.ts';
import type { Call, DuplexCall, GrpcRoutes, MethodHandler } from '../transport/transport.ts';
import { type MethodAccess, methodAccess } from './method-access.ts';
import { throwRefused } from './requested.ts';
import { answered, statusOf } from './status-of.ts';

export interface AccessGuardOptions {
  readonly state: Pick<StateMachine, 'auth' | 'accessOf'>;
  readonly authenticator: Pick<Authenticator, 'requesterOf'>;
  /**
   * Resolves when the auth data here is no older than the call, or after a while if that cannot be had; undefined if it
   * is. See CurrentReplies.
   */
  readonly caughtUp: () => Promise<void> | undefined;
}

/**
 * While authentication is enabled, every call of the API passes here: the guard names the requester of the call, and
 * refuses those that may not call the method at all. While it is disabled, calls pass untouched.
 */
export class AccessGuard {
  readonly #options: AccessGuardOptions;

  constructor(options: AccessGuardOptions) {
    this.#options = options;
  }

  /** The same routes with the guard before each. Throws for a method without a row in the table of access. */
  guard(routes: GrpcRoutes): GrpcRoutes {
    return new Map([...routes].map(([path, handler]) => [path, this.#guarded(accessTo(path), handler)]));
  }

  #guarded(access: MethodAccess, handler: MethodHandler): MethodHandler {
    switch (handler.kind) {
      case 'unary':
        return {
          kind: 'unary',
          handle: (request, call) => {
            const admitted = this.#admit(access, call);
            return admitted === undefined
              ? handler.handle(request, call)
              : admitted.then(() => handler.handle(request, call));
          },
        };
      case 'serverStream':
        return {
          kind: 'serverStream',
          handle: async (request, call, send) => {
            await this.#admit(access, call);
            await handler.handle(request, call, send);
          },
        };
      case 'bidi':
        return {
          kind: 'bidi',
          handle: (call) => {
            const guarded = new GuardedMessages(call, () => {
              // While a token is looked up, the requester stays that of the messages that the handler has.
              if (this.#options.state.auth.enabled) return this.#identify(access, call);
              const isCurrent = carriesToken(call) ? this.#options.caughtUp() : undefined;
              if (isCurrent !== undefined) return isCurrent.then(() => this.#identify(access, call));
              call.requester = undefined;
              return undefined;
            });
            handler.handle(call);
            guarded.install();
          },
        };
    }
  }

  /** Throws or rejects with the refusal. Undefined: admitted, now. */
  #admit(access: MethodAccess, call: Call): Promise<void> | undefined {
    if (access === 'anyone') return undefined;
    const { state, caughtUp } = this.#options;
    // What only root may ask for is rare: also while authentication is disabled here, another server may have enabled
    // it. Nothing later refuses what is answered from here, as a snapshot is, and a command gets its requester now. A
    // client with a token probably knows more than this server: without its requester the call would be refused.
    const mayLag = state.auth.enabled ? access === 'user' : carriesToken(call);
    const isCurrent = access === 'root' || mayLag ? caughtUp() : undefined;
    if (isCurrent !== undefined) return isCurrent.then(() => this.#identify(access, call));
    return this.#identify(access, call);
  }

  #identify(access: MethodAccess, call: Call): Promise<void> | undefined {
    if (!this.#options.state.auth.enabled) {
      call.requester = undefined;
      return undefined;
    }
    const requester = this.#options.authenticator.requesterOf(call);
    if (requester instanceof Promise) return answered(requester.then((known) => this.#admitAs(known, access, call)));
    return this.#admitAs(requester, access, call);
  }

  /** Before a client is refused for its identity, this server makes sure that authentication was not disabled. */
  #admitAs(requester: Requester, access: MethodAccess, call: Call): Promise<void> | undefined {
    const known = access === 'keys' && this.#isOld(requester) ? oldToken : requester;
    const isCurrent = identityRefusal(known) === undefined ? undefined : this.#options.caughtUp();
    if (isCurrent !== undefined) return isCurrent.then(() => this.#decide(known, access, call));
    this.#decide(known, access, call);
    return undefined;
  }

  #decide(requester: Requester, access: MethodAccess, call: Call): void {
    const { state } = this.#options;
    call.requester = state.auth.enabled ? requester : undefined;
    if (!state.auth.enabled) return;
    if (access !== 'user' && access !== 'root') return;
    const check: AccessCheck | undefined = state.accessOf(requester);
    throwRefused(access === 'root' ? check?.root() : check?.user());
  }

  #isOld({ authRevision }: Requester): boolean {
    return authRevision > anonymous.authRevision && authRevision < this.#options.state.auth.revision;
  }
}

/**
 * Identifies the client of a stream by each message: its token may have ended, and authentication may have been
 * enabled since the stream began. While a token is looked up elsewhere, the call is paused.
 */
class GuardedMessages {
  readonly #call: DuplexCall;
  readonly #identify: () => Promise<void> | undefined;
  #deliver: (message: Buffer) => void = () => {};
  readonly #resumeCall: () => void;
  #isIdentifying = false;
  #isPausedByHandler = false;
  #isOver = false;

  /** Before the handler has the call. `identify` returns undefined when the requester of the call is set. */
  constructor(call: DuplexCall, identify: () => Promise<void> | undefined) {
    this.#call = call;
    this.#identify = identify;
    const pauseCall = call.pause.bind(call);
    this.#resumeCall = call.resume.bind(call);
    call.pause = () => {
      this.#isPausedByHandler = true;
      pauseCall();
    };
    call.resume = () => {
      this.#isPausedByHandler = false;
      if (!this.#isIdentifying) this.#resumeCall();
    };
  }

  /** When the handler has the call. */
  install(): void {
    const call = this.#call;
    const closed = call.onClose;
    this.#deliver = call.onMessage;
    call.onMessage = (message) => this.#receive(message);
    call.onClose = () => {
      this.#isOver = true;
      closed();
    };
  }

  #receive(message: Buffer): void {
    const identified = this.#identify();
    if (identified === undefined) {
      this.#deliver(message);
      return;
    }
    const wasPaused = this.#isPausedByHandler;
    this.#isIdentifying = true;
    this.#call.pause();
    this.#isPausedByHandler = wasPaused;
    // The bytes are valid in this turn only.
    const copy = Buffer.from(message);
    identified.then(() => this.#continue(copy)).catch((error: unknown) => this.#call.end(statusOf(error) ?? failed()));
  }

  #continue(message: Buffer): void {
    if (this.#isOver) return;
    this.#deliver(message);
    this.#isIdentifying = false;
    if (!this.#isPausedByHandler) this.#resumeCall();
  }
}

function failed(): GrpcStatus {
  return new GrpcStatus(GrpcCode.internal, 'the request could not be handled');
}

function accessTo(path: string): MethodAccess {
  const access = methodAccess[path];
  if (access === undefined) throw new Error(`the table of api/method-access.ts does not say who may call ${path}`);
  return access;
}
