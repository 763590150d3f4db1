import { type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import { extensionFields } from '@tenure/protocol';

/** A request to a JSON gateway. */
export interface GatewayRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'OPTIONS';
  readonly path: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer is a stream that does not end: so many lines of it are awaited. */
  readonly lines?: number;
}

export interface GatewayAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The body, or its lines, as JSON if they are. */
  readonly body: unknown;
  /** What a browser may tell the page, for a request of a page; left out if there is no such header. */
  readonly access?: Readonly<Record<string, string>>;
}

export interface GatewayExchange {
  readonly request: GatewayRequest;
  readonly answer: GatewayAnswer;
}

/** What the server at host:port answers, without what differs between any two servers. */
export function answerOf(address: string, request: GatewayRequest): Promise<GatewayAnswer> {
  const { method = 'POST', path, body, headers = {}, lines } = request;
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`http://${address}`, { method, path, headers }, (response) => {
      let text = '';
      const done = (): void => {
        const contentType = response.headers['content-type'] ?? '';
        resolve({
          status: response.statusCode ?? 0,
          contentType,
          body: comparable(text),
          ...accessIn(response.headers, headers),
        });
        sent.destroy();
      };
      response.setEncoding('utf8');
      response.on('error', reject);
      response.on('end', done);
      response.on('data', (chunk: string) => {
        text += chunk;
        if (lines !== undefined && text.split('\n').length > lines) done();
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** By default etcd adds them to every answer, where Tenure has none. */
function accessIn(headers: IncomingHttpHeaders, asked: GatewayRequest['headers'] = {}): Pick<GatewayAnswer, 'access'> {
  if (asked['origin'] === undefined) return {};
  const found = Object.entries(headers).filter(([name]) => name.startsWith('access-control-'));
  return found.length === 0 ? {} : { access: Object.fromEntries(found.map(([name, value]) => [name, String(value)])) };
}

function comparable(text: string): unknown {
  const values = text.split('\n').map((line) => (line === '' ? '' : withoutOwn(jsonOrText(line))));
  return values.length === 1 ? values[0] : values;
}

function jsonOrText(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return line;
  }
}

/** Ids that a server chooses, times that pass, and the fields that only Tenure has. */
const own = new Set(['cluster_id', 'member_id', 'raft_term', ...extensionFields.map(({ field }) => field)]);

function withoutOwn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutOwn);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !own.has(name));
  return Object.fromEntries(kept.map(([name, each]) => [name, isChosen(name, each) ? 'chosen' : withoutOwn(each)]));
}

/** An id that no request has asked for. */
function isChosen(name: string, value: unknown): boolean {
  return name === 'ID' && typeof value === 'string' && value.length > 10;
}
