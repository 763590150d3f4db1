import { fromBinary } from '@bufbuild/protobuf';
import { GrpcCallError, GrpcCode, type UnaryCall } from '@tenure/grpc-client';
import { etcdserverpb } from '@tenure/protocol';
import type { RpcChannel, RpcStream } from '../../packages/client/src/etcd/connection/etcd-channel.ts';
import { CallError, type CallEnd, type ClientConnection } from '../world/client-connection.ts';
import type { LibraryProcess } from './library-process.ts';
import type { ResendChecker } from './resend-checker.ts';
import { ChannelStream } from './channel-stream.ts';

interface SimulatedChannelOptions {
  readonly process: LibraryProcess;
  readonly connect: () => ClientConnection;
  readonly resends: ResendChecker;
}

/** The channel of the library's etcd client to one simulated server. */
export class SimulatedChannel implements RpcChannel {
  readonly problem = 'the connection was refused';
  readonly #options: SimulatedChannelOptions;
  #connection: ClientConnection;
  /** Connections that were replaced, whose calls go on. */
  readonly #former: ClientConnection[] = [];

  constructor(options: SimulatedChannelOptions) {
    this.#options = options;
    this.#connection = options.connect();
  }

  get address(): string {
    return this.#connection.address;
  }

  async connect(): Promise<boolean> {
    return true;
  }

  unary(path: string, request: Uint8Array, timeoutMs: number): UnaryCall {
    const { process, resends } = this.#options;
    const written = writtenBy(path, request);
    if (written !== undefined) resends.sent(written, process.name);
    process.openCalls += 1;
    let cancel = (): void => {};
    const cancelled = new Promise<never>((_, reject) => {
      cancel = () => reject(errorOf({ code: GrpcCode.cancelled, message: 'the call was cancelled' }));
    });
    const call = this.#connection.call(path, request, timeoutMs).catch((error: unknown) => {
      throw error instanceof CallError ? errorOf(error) : error;
    });
    // Also a refusal counts: the library does not send a refused write again by itself.
    if (written !== undefined) resends.ambiguous(written);
    const reply = Promise.race([call, cancelled])
      .then((bytes) => Buffer.from(bytes))
      .finally(() => (process.openCalls -= 1));
    return { reply, cancel: () => cancel() };
  }

  stream(path: string): RpcStream {
    const { process } = this.#options;
    process.openWatches += 1;
    return new ChannelStream(this.#connection, path, () => (process.openWatches -= 1));
  }

  reconnect(): void {
    this.#former.push(this.#connection);
    this.#connection = this.#options.connect();
  }

  close(): void {
    for (const connection of [...this.#former.splice(0), this.#connection]) connection.close();
  }
}

function errorOf({ code, message }: CallEnd): GrpcCallError {
  return new GrpcCallError(code, message, { wasSent: true });
}

/** The request as text if it must not be sent twice: a transaction with a put that has no revision as its condition. */
function writtenBy(path: string, request: Uint8Array): string | undefined {
  if (path !== '/etcdserverpb.KV/Txn') return undefined;
  const { compare, success } = fromBinary(etcdserverpb.TxnRequestSchema, request);
  if (!success.some(({ request: { case: kind } }) => kind === 'requestPut')) return undefined;
  if (compare.some(({ target }) => target === etcdserverpb.Compare_CompareTarget.MOD)) return undefined;
  return `the transaction ${Buffer.from(request).toString('base64')}`;
}
