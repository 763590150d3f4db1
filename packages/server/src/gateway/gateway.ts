import { posix } from 'node:path';
import type { OutgoingHttpHeaders } from 'node:http';
import type { RpcMethod } from '@tenure/protocol';
import {
  type CallConnection,
  type CallerConnection,
  GrpcCode,
  GrpcStatus,
  type HttpStream,
  type HttpStreams,
} from '@tenure/grpc-server';
import type { GrpcRoutes, MethodHandler } from '../transport/transport.ts';
import type { BrowserAccess } from './browser-access.ts';
import { DuplexRequest } from './duplex-request.ts';
import type { CallOptions, GatewayCall } from './gateway-call.ts';
import { metadataOf, timeoutMsOf } from './gateway-metadata.ts';
import { gatewayMethods } from './gateway-paths.ts';
import { httpStatusOf, statusJson } from './gateway-status.ts';
import { MessageTurn } from './message-turn.ts';
import { type Refusal, refuseRequest } from './refused-request.ts';
import { ServerStreamRequest } from './server-stream-request.ts';
import { UnaryRequest } from './unary-request.ts';

export interface GatewayOptions {
  /** The methods as gRPC clients call them, with every guard around them. */
  readonly routes: GrpcRoutes;
  readonly access: BrowserAccess;
  /** Whether authentication is enabled. */
  readonly state: { readonly auth: { readonly enabled: boolean } };
}

/**
 * JSON is larger than protobuf: base64 takes four bytes for three, and small fields have long names. Beyond this many
 * times the largest message a body is refused unread.
 */
const jsonBytesPerMessageByte = 4;

/** Also the prefix of etcd 3.3, which etcd still accepts. */
const prefix = /^\/v3(?:beta)?(?=\/|$|\?)/;

const certificateIgnored =
  'CommonName of client sending a request against gateway will be ignored and not used as expected\n';

/**
 * etcd's JSON gateway: the methods of the API as POST requests with JSON bodies under /v3/. A request becomes a call of
 * the same routes as over gRPC, behind the same guards; only the common name of a client's certificate does not count.
 */
export class Gateway implements HttpStreams {
  readonly #options: GatewayOptions;
  readonly #messageTurn = new MessageTurn();
  /** As its calls see a connection: without the name in its certificate. */
  readonly #callers = new WeakMap<CallConnection, CallerConnection>();

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  serves(target: string): boolean {
    return prefix.test(target);
  }

  handle(stream: HttpStream): void {
    const { access } = this.#options;
    // A host that is not in the list is told nothing of --cors, as by etcd.
    const refusal = access.answer(stream.request) ?? this.#refusal(stream);
    if (refusal !== undefined) {
      refuseRequest(stream, refusal);
      return;
    }
    try {
      const [method, handler] = this.#methodAt(stream);
      this.#call(stream, method, handler).start();
    } catch (error) {
      if (!(error instanceof GrpcStatus)) throw error;
      refuseRequest(stream, this.#statusRefusal(stream, error));
    }
  }

  /** A refusal that is not a status of gRPC. */
  #refusal({ request, connection }: HttpStream): Refusal | undefined {
    if (this.#options.access.isForeign(request)) {
      return plain(403, `the origin ${JSON.stringify(request.headers.origin)} is not in --cors\n`);
    }
    if (connection.certificateName !== undefined && this.#options.state.auth.enabled) {
      return plain(400, certificateIgnored, this.#options.access.headers(request));
    }
    const path = pathOf(request.target);
    const clean = posix.normalize(path === '/v3' ? '/v3/' : path);
    if (clean === path) return undefined;
    const headers = { ...this.#options.access.headers(request), location: encodeURI(clean) };
    return { status: 307, headers, body: '' };
  }

  #statusRefusal({ request }: HttpStream, status: GrpcStatus): Refusal {
    const headers = { ...this.#options.access.headers(request), 'content-type': 'application/json' };
    return { status: httpStatusOf(status), headers, body: statusJson(status) };
  }

  #methodAt({ request }: HttpStream): readonly [RpcMethod, MethodHandler] {
    const method = gatewayMethods.get(pathOf(request.target));
    const handler = method && this.#options.routes.get(method.path);
    if (method === undefined || handler === undefined) throw new GrpcStatus(GrpcCode.notFound, 'Not Found');
    if (request.method !== 'POST') throw new GrpcStatus(GrpcCode.unimplemented, 'Method Not Allowed');
    return [method, handler];
  }

  #call(stream: HttpStream, method: RpcMethod, handler: MethodHandler): GatewayCall {
    const { request, connection } = stream;
    const headers: OutgoingHttpHeaders = this.#options.access.headers(request);
    const options: CallOptions = {
      path: method.path,
      metadata: metadataOf(request.headers),
      timeoutMs: timeoutMsOf(request.headers),
      caller: this.#callerOf(connection),
      headers,
      maxJsonBytes: connection.limits.maxReceiveBytes * jsonBytesPerMessageByte,
      messageTurn: this.#messageTurn,
    };
    switch (handler.kind) {
      case 'unary':
        return new UnaryRequest(stream, method, handler.handle, options);
      case 'serverStream':
        return new ServerStreamRequest(stream, method, handler.handle, options);
      case 'bidi':
        return new DuplexRequest(stream, method, handler.handle, options);
    }
  }

  #callerOf(connection: CallConnection): CallerConnection {
    const known = this.#callers.get(connection);
    if (known !== undefined) return known;
    const caller = { remoteAddress: connection.remoteAddress, commonName: undefined };
    this.#callers.set(connection, caller);
    return caller;
  }
}

/** Without the query, which no method reads, decoded, and under /v3. */
function pathOf(target: string): string {
  const queryAt = target.indexOf('?');
  const path = (queryAt < 0 ? target : target.slice(0, queryAt)).replace(prefix, '/v3');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function plain(status: number, body: string, more: Readonly<Record<string, string>> = {}): Refusal {
  const headers = { ...more, 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
  return { status, headers, body };
}
