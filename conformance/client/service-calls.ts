import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { CallOptions, GrpcClient } from './grpc-client.ts';

type UnaryCall<M> =
  M extends DescMethodUnary<infer I extends DescMessage, infer O extends DescMessage>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : never;

/** The unary methods of a service as functions that return the response or throw Refusal. */
export type ServiceCalls<Methods> = { readonly [K in keyof Methods]: UnaryCall<Methods[K]> };

export function serviceCalls<Methods extends Record<string, unknown>>(
  client: GrpcClient,
  service: { readonly method: Methods },
): ServiceCalls<Methods> {
  const calls: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(service.method)) {
    calls[name] = (request: MessageInitShape<DescMessage>, options?: CallOptions) =>
      client.unary(method as DescMethodUnary, request, options);
  }
  return calls as ServiceCalls<Methods>;
}
