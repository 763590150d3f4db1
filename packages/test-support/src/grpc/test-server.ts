import {
  type ListenerTls,
  type StatusFormat,
  type GrpcServer,
  type HttpHandler,
  type MethodHandler,
  type TransportLimits,
  createGrpcServer,
} from '@tenure/grpc-server';

export interface TestServer {
  readonly transport: GrpcServer;
  readonly port: number;
  /** The warnings and errors that the transport has logged. */
  readonly logged: string[];
  /** The reasons that they name. */
  readonly faults: string[];
}

/** A transport on its own port, with the given methods, that responds to HTTP/1 with the request line. */
export async function startTestServer<Requester = unknown>(
  routes: Readonly<Record<string, MethodHandler<Requester>>>,
  limits: Partial<TransportLimits> = {},
  onHttp: HttpHandler = requestLine,
  peerPath?: string,
  tls?: ListenerTls,
  statusFormat?: StatusFormat,
): Promise<TestServer> {
  const logged: string[] = [];
  const faults: string[] = [];
  const note = (fields: object, text: string): void => {
    logged.push(text);
    if ('reason' in fields && 'remoteAddress' in fields) faults.push(`${fields.remoteAddress}: ${fields.reason}`);
  };
  const transport = createGrpcServer({
    routes: new Map(Object.entries(routes)),
    onHttp,
    log: {
      debug: () => {},
      warn: note,
      error: note,
    },
    limits,
    ...(peerPath === undefined ? {} : { peerPath }),
    ...(statusFormat === undefined ? {} : { statusFormat }),
  });
  const { port } = await transport.listen('127.0.0.1', 0, tls);
  return { transport, port, logged, faults };
}

const requestLine: HttpHandler = async ({ method, target }) => ({
  status: 200,
  headers: {},
  body: `${method} ${target}`,
});

/** Responds with its request. */
export function echo(request: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(5), request]);
}

/** A promise and the function that settles it. */
export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
