import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { EtcdConnection, EtcdStream } from '../connection/etcd-connection.ts';
import { etcdErrorOf } from '../connection/etcd-error-of.ts';

/** One stream of typed messages. */
export interface MessageStream<I extends DescMessage, O extends DescMessage> {
  send(message: MessageInitShape<I>): void;
  /** Ends the sending side of the stream. */
  end(): void;
  /**
   * The answers in their order; they end when the server ends the stream without an error; otherwise EtcdError is
   * thrown. Leaving the loop cancels the stream.
   */
  readonly messages: AsyncGenerator<MessageShape<O>, void, undefined>;
}

/** Rejects with EtcdError when there is no server. */
export async function openStream<I extends DescMessage, O extends DescMessage>(
  connection: EtcdConnection,
  method: DescMethodServerStreaming<I, O> | DescMethodBiDiStreaming<I, O>,
): Promise<MessageStream<I, O>> {
  const stream = await connection.stream(`/${method.parent.typeName}/${method.name}`);
  // The reader gets the error. Without a reader it must not become an unhandled rejection.
  stream.call.on('error', () => undefined);
  return {
    send: (message) => stream.call.write(Buffer.from(toBinary(method.input, create(method.input, message)))),
    end: () => stream.call.end(),
    messages: read(stream, method.output),
  };
}

async function* read<O extends DescMessage>(
  { call, endpoint, abandon }: EtcdStream,
  schema: O,
): AsyncGenerator<MessageShape<O>, void, undefined> {
  try {
    for await (const bytes of call as AsyncIterable<Buffer>) yield fromBinary(schema, bytes);
  } catch (error) {
    abandon();
    throw etcdErrorOf(endpoint, error);
  } finally {
    call.cancel();
  }
}
