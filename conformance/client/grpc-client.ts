import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { MessageQueue } from './message-queue.ts';
import { Refusal, type CallStatus } from './refusal.ts';

const defaultDeadlineMs = 30_000;
const maxReceivedMessageBytes = 64 * 1024 * 1024;

export type Metadata = Readonly<Record<string, string>>;

export interface CallOptions {
  readonly deadlineMs?: number;
  readonly metadata?: Metadata;
}

export type Outcome<T> = { readonly ok: true; readonly response: T } | ({ readonly ok: false } & CallStatus);

export interface BidiStream<Request extends DescMessage, Response extends DescMessage> {
  readonly messages: MessageQueue<MessageShape<Response>>;
  /** Resolves when the call is over, never rejects. */
  readonly ended: Promise<CallStatus>;
  send(request: MessageInitShape<Request>): void;
  sendRaw(request: Uint8Array): void;
  halfClose(): void;
  /** Pauses reading, so that the server's replies pile up; and resumes. */
  pause(): void;
  resume(): void;
  cancel(): void;
}

const asIs = (bytes: Buffer): Buffer => bytes;

/** One HTTP/2 connection with gRPC calls by message descriptors, and by raw bytes for invalid requests. */
export class GrpcClient {
  readonly #client: grpc.Client;
  readonly #metadata: Metadata;

  /** `metadata` goes with every call, and that of a call takes precedence. */
  constructor(address: string, channelOptions: grpc.ChannelOptions = {}, metadata: Metadata = {}) {
    this.#metadata = metadata;
    this.#client = new grpc.Client(address, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': maxReceivedMessageBytes,
      'grpc.use_local_subchannel_pool': 1,
      ...channelOptions,
    });
  }

  close(): void {
    this.#client.close();
  }

  #metadataOf(options: CallOptions): grpc.Metadata {
    const metadata = new grpc.Metadata();
    for (const [name, value] of Object.entries({ ...this.#metadata, ...options.metadata })) metadata.set(name, value);
    return metadata;
  }

  /** A unary call with raw bytes in both directions. Never rejects: a refusal is an outcome. */
  unaryRaw(path: string, request: Uint8Array, options: CallOptions = {}): Promise<Outcome<Buffer>> {
    const deadline = Date.now() + (options.deadlineMs ?? defaultDeadlineMs);
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        path,
        asIs,
        asIs,
        Buffer.from(request.buffer, request.byteOffset, request.byteLength),
        this.#metadataOf(options),
        { deadline },
        (error, response) => {
          if (error !== null) resolve({ ok: false, code: error.code, details: error.details });
          else resolve({ ok: true, response: response ?? Buffer.alloc(0) });
        },
      );
    });
  }

  /** The response; throws Refusal when the status is another than OK. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const bytes = toBinary(method.input, create(method.input, request));
    const outcome = await this.unaryRaw(`/${method.parent.typeName}/${method.name}`, bytes, options);
    if (!outcome.ok) throw new Refusal(outcome);
    return fromBinary(method.output, outcome.response);
  }

  /** All messages of a server stream; throws Refusal when it ends with another status than OK. */
  serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>[]> {
    const call = this.#client.makeServerStreamRequest(
      `/${method.parent.typeName}/${method.name}`,
      asIs,
      (bytes: Buffer) => fromBinary(method.output, bytes),
      Buffer.from(toBinary(method.input, create(method.input, request))),
      this.#metadataOf(options),
      { deadline: Date.now() + (options.deadlineMs ?? defaultDeadlineMs) },
    );
    const messages: MessageShape<O>[] = [];
    return new Promise((resolve, reject) => {
      call.on('data', (message: MessageShape<O>) => messages.push(message));
      call.on('error', () => {});
      call.on('status', (status) => {
        if (status.code === grpc.status.OK) resolve(messages);
        else reject(new Refusal({ code: status.code, details: status.details }));
      });
    });
  }

  /** Sends the one request of a server stream, whose messages are read as they come. */
  open<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): BidiStream<I, O> {
    // The same frames as those of a bidirectional call that sends one message.
    const stream = this.bidi({ ...method, methodKind: 'bidi_streaming' } as DescMethodBiDiStreaming<I, O>, options);
    stream.send(request);
    stream.halfClose();
    return stream;
  }

  bidi<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    options: CallOptions = {},
  ): BidiStream<I, O> {
    const call = this.#client.makeBidiStreamRequest(
      `/${method.parent.typeName}/${method.name}`,
      asIs,
      (bytes: Buffer) => fromBinary(method.output, bytes),
      this.#metadataOf(options),
      options.deadlineMs === undefined ? {} : { deadline: Date.now() + options.deadlineMs },
    );
    const messages = new MessageQueue<MessageShape<O>>();
    call.on('data', (message: MessageShape<O>) => messages.push(message));
    call.on('error', () => {});
    const ended = new Promise<CallStatus>((resolve) => {
      call.on('status', ({ code, details }) => {
        messages.close({ code, details });
        resolve({ code, details });
      });
    });
    return {
      messages,
      ended,
      send: (request) => call.write(Buffer.from(toBinary(method.input, create(method.input, request)))),
      sendRaw: (request) => call.write(Buffer.from(request)),
      halfClose: () => call.end(),
      pause: () => void call.pause(),
      resume: () => void call.resume(),
      cancel: () => call.cancel(),
    };
  }
}
