// The generated messages and services, under their package names on the wire: the types share names with the
// hand-written codecs' types, in which bytes are latin1 strings.
export * as authpb from './gen/auth.gen.ts';
export * as etcdserverpb from './gen/rpc.gen.ts';
export * as healthpb from './gen/health.gen.ts';
export * as mvccpb from './gen/kv.gen.ts';
export * as tenureLog from './gen/tenure_log.gen.ts';
export * as peerpb from './gen/tenure_peer.gen.ts';
export * as v3electionpb from './gen/election.gen.ts';
export * as v3lockpb from './gen/lock.gen.ts';

export { type ErrorEntry, type ErrorName, errorCatalogue } from './errors/error-catalogue.ts';
export { exactText } from './errors/exact-text.ts';
export { type ExtensionField, extensionFields, firstExtensionNumber, reasonTrailer } from './extensions.ts';
export { parseGoDurationMs } from './go-duration.ts';
export { type MethodKind, type RpcMethod, rpcMethods } from './methods.ts';
