import type { Requester } from '@tenure/core';
import type * as grpc from '@tenure/grpc-server';

/** Calls of this server, which name their requester while authentication is enabled. */
export type Call = grpc.Call<Requester>;
export type DuplexCall = grpc.DuplexCall<Requester>;
export type UnaryHandler = grpc.UnaryHandler<Requester>;
export type ServerStreamHandler = grpc.ServerStreamHandler<Requester>;
export type BidiHandler = grpc.BidiHandler<Requester>;
export type MethodHandler = grpc.MethodHandler<Requester>;
export type GrpcRoutes = grpc.GrpcRoutes<Requester>;
export type GrpcServerOptions = grpc.GrpcServerOptions<Requester>;
