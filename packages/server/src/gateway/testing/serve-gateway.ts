import { type TransportLimits, createGrpcServer } from '@tenure/grpc-server';
import type { MethodHandler } from '../../transport/transport.ts';
import { BrowserAccess } from '../browser-access.ts';
import { Gateway } from '../gateway.ts';

export interface GatewayOptions {
  readonly routes: Readonly<Record<string, MethodHandler>>;
  readonly limits?: Partial<TransportLimits>;
  readonly cors?: readonly string[];
}

/** A transport with these methods at the gateway. */
export async function serveGateway({
  routes,
  limits = {},
  cors = [],
}: GatewayOptions): Promise<{ readonly port: number; close(): Promise<void> }> {
  const methods = new Map(Object.entries(routes));
  const access = new BrowserAccess({ cors, hostWhitelist: ['*'] });
  const transport = createGrpcServer({
    routes: methods,
    onHttp: access.guard(async () => ({ status: 200, headers: {}, body: 'page' })),
    httpStreams: new Gateway({ routes: methods, access, state: { auth: { enabled: false } } }),
    log: { debug: () => {}, warn: () => {}, error: () => {} },
    limits,
  });
  const { port } = await transport.listen('127.0.0.1', 0);
  return {
    port,
    close: async () => {
      await transport.close({ graceMs: 100 });
    },
  };
}
