import type { HttpHandler, HttpReply } from '@tenure/grpc-server';
import type { Logger } from '../logging/logger.ts';
import { checkHealth, type HealthSource, livenessChecks, type NamedCheck, readinessChecks } from './health-checks.ts';
import type { ServerMetrics } from './server-metrics.ts';

export interface HttpHandlerOptions {
  readonly health: HealthSource;
  readonly metrics: ServerMetrics;
  readonly log: Logger;
  /** The version of the implemented etcd API, which clients check, and of Tenure itself. */
  readonly versions: { readonly etcd: string; readonly tenure: string };
  /** The description of the JSON gateway. */
  readonly openApi: () => Promise<string>;
}

const json = 'application/json';
const text = 'text/plain; charset=utf-8';

/** The paths that have a page, and perhaps a query. */
const pagePattern = /^\/(?:health|version|metrics|openapi\.json|(?:livez|readyz)(?:\/[^?]*)?)(?:\?|$)/;
const notThere = problem(404, 'there is nothing at this path');

/**
 * The pages served over HTTP beside gRPC: health, version, metrics, the description of the JSON gateway. Only GET and
 * HEAD; no page changes state or shows keys, so a cross-site request from a browser reveals nothing that matters.
 */
export function createHttpHandler(options: HttpHandlerOptions): HttpHandler {
  return async ({ method, target }) => {
    if (method !== 'GET' && method !== 'HEAD') {
      if (!pagePattern.test(target)) return notThere;
      const refused = problem(405, 'only GET and HEAD are allowed here; the API is gRPC, or JSON under /v3/');
      return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD' } };
    }
    try {
      return await answer(target === '' ? '/' : target, options);
    } catch (error) {
      options.log.error({ err: error, path: target }, 'an HTTP request failed');
      return problem(500, 'internal error');
    }
  };
}

async function answer(target: string, options: HttpHandlerOptions): Promise<HttpReply> {
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const query = new URLSearchParams(queryAt < 0 ? '' : target.slice(queryAt + 1));
  switch (path) {
    case '/health':
      return health(query, options);
    case '/version':
      return version(options.versions);
    case '/metrics':
      return page(200, options.metrics.contentType, await options.metrics.text());
    case '/openapi.json':
      return page(200, json, await options.openApi());
    default:
      return (await probe(path, query, options)) ?? notThere;
  }
}

async function health(query: URLSearchParams, options: HttpHandlerOptions): Promise<HttpReply> {
  const found = await checkHealth(options.health, {
    serializable: query.get('serializable') === 'true',
    excluded: new Set(query.getAll('exclude')),
  });
  if (found.health === 'false')
    options.log.warn({ reason: found.reason }, '/health answers that the server is not well');
  return page(found.health === 'true' ? 200 : 503, json, JSON.stringify(found));
}

function version(versions: HttpHandlerOptions['versions']): HttpReply {
  const body = {
    etcdserver: versions.etcd,
    etcdcluster: versions.etcd,
    storage: versions.etcd,
    tenure: versions.tenure,
  };
  return page(200, json, JSON.stringify(body));
}

/** /livez and /readyz, or one check of them (/readyz/linearizable_read), in the format of Kubernetes' probes. */
async function probe(
  path: string,
  query: URLSearchParams,
  options: HttpHandlerOptions,
): Promise<HttpReply | undefined> {
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
): Promise<HttpReply> {
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
  // Failed checks are always listed; passed ones only on request.
  if (failed) return page(503, text, `${lines.join('\n')}\n`);
  return page(200, text, query.has('verbose') ? `${lines.join('\n')}\nok\n` : 'ok\n');
}

function problem(status: number, message: string): HttpReply {
  return page(status, json, JSON.stringify({ error: message, code: status }));
}

function page(status: number, type: string, body: string): HttpReply {
  return {
    status,
    headers: { 'content-type': type, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
    body,
  };
}
