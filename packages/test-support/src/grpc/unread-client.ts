import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { frameMessage } from '../http2/raw-call.ts';

/** A client over HTTP/2 that gives the server no window: no byte of a body can leave before `read` is called. */
export class UnreadClient {
  readonly session: ClientHttp2Session;
  readonly closed: Promise<unknown>;
  /** The gRPC status of refused streams among the answered ones, in the order of the responses. */
  readonly statuses: (string | undefined)[] = [];

  constructor(port: number) {
    this.session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
    this.session.on('error', () => {});
    this.closed = new Promise((resolve) => this.session.on('close', resolve));
  }

  call(path: string): ClientHttp2Stream {
    const stream = this.#request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
    stream.end(frameMessage(Buffer.from('x')));
    return stream;
  }

  get(path: string): ClientHttp2Stream {
    return this.#request({ ':method': 'GET', ':path': path });
  }

  /** Opens the window. */
  read(): void {
    this.session.settings({ initialWindowSize: 2 ** 20 });
  }

  #request(headers: Record<string, string>): ClientHttp2Stream {
    const stream = this.session.request(headers);
    stream.on('error', () => {});
    stream.on('response', (answered) => this.statuses.push(answered['grpc-status'] as string | undefined));
    stream.resume();
    return stream;
  }
}
