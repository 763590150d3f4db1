import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../logging/logger.ts';
import { checkHealth, type HealthSource, livenessChecks, type NamedCheck, readinessChecks } from './health-checks.ts';
import type { ServerMetrics } from './server-metrics.ts';

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface HttpHandlerOptions {
  readonly health: HealthSource;
  readonly metrics: ServerMetrics;
  readonly log: Logger;
  /** Of the etcd API that is spoken, which clients look at, and of Tenure itself. */
  readonly versions: { readonly etcd: string; readonly tenure: string };
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const json = 'application/json';
const text = 'text/plain; charset=utf-8';

/**
 * What is served over HTTP/1.1 beside gRPC: health, version and metrics. Only GET and HEAD, nothing here changes
 * state or shows keys, so a page in a browser that is tricked into asking learns nothing that matters.
 */
export function createHttpHandler(options: HttpHandlerOptions): HttpHandler {
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      // Closing drops a body of whatever length that nobody will read. HTTP/2 has no such header, and node would warn
      // of it.
      if (request.httpVersionMajor < 2) response.setHeader('Connection', 'close');
      response.setHeader('Allow', 'GET, HEAD');
      send(response, problem(405, 'only GET and HEAD are allowed here; the API is gRPC on this port'));
      return;
    }
    answer(request.url ?? '/', options).then(
      (found) => send(response, found),
      (error: unknown) => {
        options.log.error({ err: error, path: request.url }, 'an HTTP request failed');
        send(response, problem(500, 'internal error'));
      },
    );
  };
}

async function answer(target: string, options: HttpHandlerOptions): Promise<Answer> {
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const query = new URLSearchParams(queryAt < 0 ? '' : target.slice(queryAt + 1));
  switch (path) {
    case '/health':
      return health(query, options);
    case '/version':
      return version(options.versions);
    case '/metrics':
      return { status: 200, type: options.metrics.contentType, body: await options.metrics.text() };
    default:
      return (await probe(path, query, options)) ?? notFound(path);
  }
}

async function health(query: URLSearchParams, options: HttpHandlerOptions): Promise<Answer> {
  const found = await checkHealth(options.health, {
    serializable: query.get('serializable') === 'true',
    excluded: new Set(query.getAll('exclude')),
  });
  if (found.health === 'false')
    options.log.warn({ reason: found.reason }, '/health answers that the server is not well');
  return { status: found.health === 'true' ? 200 : 503, type: json, body: JSON.stringify(found) };
}

function version(versions: HttpHandlerOptions['versions']): Answer {
  const body = {
    etcdserver: versions.etcd,
    etcdcluster: versions.etcd,
    storage: versions.etcd,
    tenure: versions.tenure,
  };
  return { status: 200, type: json, body: JSON.stringify(body) };
}

/**
 * /livez and /readyz, whole or one check of them (/readyz/linearizable_read), in the form that Kubernetes'
 * probes have.
 */
async function probe(path: string, query: URLSearchParams, options: HttpHandlerOptions): Promise<Answer | undefined> {
  const [, probeName, checkName, ...rest] = path.split('/');
  const all = probeName === 'livez' ? livenessChecks : probeName === 'readyz' ? readinessChecks : undefined;
  if (all === undefined || rest.length > 0) return undefined;
  if (checkName === undefined || checkName === '') return runChecks(all, query, options);
  const check = all.get(checkName);
  return check === undefined ? undefined : runChecks(new Map([[checkName, check]]), query, options);
}

async function runChecks(
  checks: ReadonlyMap<string, NamedCheck>,
  query: URLSearchParams,
  options: HttpHandlerOptions,
): Promise<Answer> {
  const excluded = new Set(query.getAll('exclude'));
  const allowed = query.getAll('allowlist');
  const lines: string[] = [];
  let failed = false;
  for (const [name, check] of checks) {
    if (allowed.length > 0 && !allowed.includes(name)) continue;
    if (excluded.has(name)) {
      lines.push(`[+]${name} excluded: ok`);
      continue;
    }
    const found = await check(options.health);
    lines.push(found === undefined ? `[+]${name} ok` : `[-]${name} failed: ${found}`);
    if (found !== undefined) {
      failed = true;
      options.log.warn({ check: name, reason: found }, 'a health check fails');
    }
  }
  // What fails is always shown; what is well only to those who ask.
  if (failed) return { status: 503, type: text, body: `${lines.join('\n')}\n` };
  return { status: 200, type: text, body: query.has('verbose') ? `${lines.join('\n')}\nok\n` : 'ok\n' };
}

function notFound(path: string): Answer {
  const gateway = /^\/v3(?:alpha|beta)?\//.test(path);
  return problem(
    404,
    gateway ? 'the JSON gateway is not there yet; use gRPC on this port' : 'there is nothing at this path',
  );
}

function problem(status: number, message: string): Answer {
  return { status, type: json, body: JSON.stringify({ error: message, code: status }) };
}

function send(response: ServerResponse, found: Answer): void {
  response.writeHead(found.status, {
    'Content-Type': found.type,
    'Content-Length': Buffer.byteLength(found.body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(found.body);
}
