import type { StateMachine } from '@tenure/core';
import { errorCatalogue, type ErrorName } from '@tenure/protocol';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { Call, DuplexCall, GrpcRoutes, MethodHandler } from '../transport/transport.ts';
import type { Clock } from '../time/clock.ts';
import type { AuditSink } from './audit-record.ts';
import { type AuditedRequest, auditedKeys, auditedRequest, watchedRange } from './audited-request.ts';
import { statusOf, statusOfCoreError } from './status-of.ts';
import { LimitedRecords, strangerLimit, userLimit } from './limited-records.ts';

const forbidding: readonly ErrorName[] = [
  'PermissionDenied',
  'InvalidAuthToken',
  'UserEmpty',
  'AuthOldRevision',
  'AuthFailed',
];
const forbiddingTexts: ReadonlySet<string> = new Set(forbidding.map((name) => errorCatalogue[name].text));

/**
 * Records each request with its outcome, after the access guard: unary calls and streams from the server when they end,
 * and the messages of a Watch or LeaseKeepAlive call one by one. A renewal is recorded only when it is refused, which
 * ends its call: renewals are the bulk of all requests, and each lease has its grant in the log. Each user gets so many
 * records a minute. So do callers without an identity while authentication is enabled, but a login that succeeds always
 * has one.
 */
export class AuditGuard {
  readonly #sink: AuditSink;
  readonly #state: Pick<StateMachine, 'accessOf' | 'auth'>;
  readonly #strangers: LimitedRecords;
  readonly #users: LimitedRecords;

  constructor(sink: AuditSink, state: Pick<StateMachine, 'accessOf' | 'auth'>, clock: Clock) {
    this.#sink = sink;
    this.#state = state;
    this.#strangers = new LimitedRecords(sink, clock, strangerLimit);
    this.#users = new LimitedRecords(sink, clock, userLimit);
  }

  /** When no request is left: writes what was only counted. */
  stop(): void {
    this.#strangers.stop();
    this.#users.stop();
  }

  /** The same routes with all but bidirectional calls recorded: around the access guard, which refuses some. */
  guardCalls(routes: GrpcRoutes): GrpcRoutes {
    return new Map([...routes].map(([path, handler]) => [path, this.#recorded(path, handler)]));
  }

  /** The same routes, with messages of bidirectional calls recorded: inside the access guard, which sets the user. */
  guardMessages(routes: GrpcRoutes): GrpcRoutes {
    return new Map([...routes].map(([path, handler]) => [path, this.#recordedMessages(path, handler)]));
  }

  #recordedMessages(path: string, handler: MethodHandler): MethodHandler {
    if (handler.kind !== 'bidi') return handler;
    return {
      kind: 'bidi',
      handle: (call) => {
        handler.handle(call);
        if (path === '/etcdserverpb.Watch/Watch') this.#recordWatches(call);
        else this.#recordEnd(call);
      },
    };
  }

  #recorded(path: string, handler: MethodHandler): MethodHandler {
    switch (handler.kind) {
      case 'unary':
        return {
          kind: 'unary',
          handle: async (request, call) => {
            const about = auditedRequest(path, request);
            try {
              const reply = await handler.handle(request, call);
              this.#record(call, about);
              return reply;
            } catch (error) {
              this.#record(call, about, error);
              throw error;
            }
          },
        };
      case 'serverStream':
        return {
          kind: 'serverStream',
          handle: async (request, call, send) => {
            const about = auditedRequest(path, request);
            try {
              await handler.handle(request, call, send);
              this.#record(call, about);
            } catch (error) {
              this.#record(call, about, error);
              throw error;
            }
          },
        };
      case 'bidi':
        return handler;
    }
  }

  #recordWatches(call: DuplexCall): void {
    const deliver = call.onMessage;
    call.onMessage = (message) => {
      const range = watchedRange(message);
      if (range !== undefined) {
        const refused = this.#state.accessOf(call.requester)?.read(range);
        const error = refused === undefined ? undefined : statusOfCoreError(refused);
        this.#record(call, auditedKeys([range]), error);
      }
      deliver(message);
    };
  }

  /** The last lease is that of the message which ended the call. */
  #recordEnd(call: DuplexCall): void {
    const deliver = call.onMessage;
    const end = call.end.bind(call);
    let last: Buffer | undefined;
    call.onMessage = (message) => {
      last = message;
      deliver(message);
    };
    call.end = (status) => {
      if (status.code !== GrpcCode.ok) {
        this.#record(call, last === undefined ? undefined : auditedRequest(call.path, last), status);
      }
      end(status);
    };
  }

  #record({ path, connection, requester }: Call, about: AuditedRequest | undefined, error?: unknown): void {
    const status = error === undefined ? undefined : (statusOf(error) ?? internal);
    const by = requester?.user ?? connection.commonName ?? '';
    // The health is all that a stranger is told. Other answers are to a login, or to what authentication came after.
    const isTold = status === undefined && !path.startsWith('/grpc.health.v1.Health/');
    const isOfStranger = by === '' && !isTold && this.#state.auth.enabled;
    const sink = isOfStranger ? this.#strangers : by === '' ? this.#sink : this.#users;
    sink.record({
      method: path.slice(path.indexOf('.') + 1),
      by,
      address: connection.remoteAddress,
      ...about,
      allowed: status === undefined || !forbiddingTexts.has(status.message),
      ...(status === undefined ? {} : { error: status.message }),
    });
  }
}

const internal = new GrpcStatus(GrpcCode.internal, 'internal error');
