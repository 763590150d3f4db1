import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { Election } from './gen/election.gen.ts';
import { Health } from './gen/health.gen.ts';
import { Lock } from './gen/lock.gen.ts';
import { Auth, Cluster, KV, Lease, Maintenance, Watch } from './gen/rpc.gen.ts';

/** Which sides stream. etcd's API has no call in which only the client streams. */
export type MethodKind = 'unary' | 'serverStream' | 'bidi';

export interface RpcMethod {
  /** '/package.Service/Method' */
  readonly path: string;
  /** 'package.Service' */
  readonly service: string;
  readonly name: string;
  readonly kind: MethodKind;
  /** The generated description, with the schemas of request and reply. */
  readonly descriptor: DescMethod;
}

const services: readonly DescService[] = [KV, Watch, Lease, Cluster, Maintenance, Auth, Lock, Election, Health];

function methodKind(descriptor: DescMethod): MethodKind {
  switch (descriptor.methodKind) {
    case 'unary':
      return 'unary';
    case 'server_streaming':
      return 'serverStream';
    case 'bidi_streaming':
      return 'bidi';
    case 'client_streaming':
      throw new Error(`${descriptor.toString()} streams from the client alone, which no service of etcd's does`);
  }
}

function rpcMethod(descriptor: DescMethod): RpcMethod {
  const service = descriptor.parent.typeName;
  return {
    path: `/${service}/${descriptor.name}`,
    service,
    name: descriptor.name,
    kind: methodKind(descriptor),
    descriptor,
  };
}

/**
 * Every RPC of etcd's v3 API and of gRPC's health service, by path, including those that a server has not implemented,
 * so that it can refuse them with a text of its own.
 */
export const rpcMethods: ReadonlyMap<string, RpcMethod> = new Map(
  services.flatMap((service) => service.methods.map(rpcMethod)).map((method) => [method.path, method]),
);
