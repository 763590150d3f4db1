export { GrpcCallError, GrpcCode } from './grpc-call-error.ts';
export {
  GrpcChannel,
  type GrpcChannelOptions,
  type GrpcMetadata,
  type GrpcTls,
  type UnaryCall,
} from './grpc-channel.ts';
export type { GrpcStream } from './grpc-stream.ts';
