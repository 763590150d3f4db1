import type { HttpHandler, HttpReply, HttpRequest } from '@tenure/grpc-server';

export interface BrowserAccessOptions {
  /** The origins whose pages may call the API, and '*' for all. */
  readonly cors: readonly string[];
  /** The names by which clients may reach an address without TLS, and '*' for all. */
  readonly hostWhitelist: readonly string[];
}

const text = 'text/plain; charset=utf-8';

/**
 * What web pages may do with the server. A browser names the origin of the page with every POST, and asks before any
 * request that is more than a form could send; other programs name none. The pages of an origin that is not in --cors
 * may therefore neither read an answer nor, unlike with etcd, send a request of the API at all
 * (docs/decisions/034-web-pages-need-cors.md).
 */
export class BrowserAccess {
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: ReadonlySet<string>;

  constructor({ cors, hostWhitelist }: BrowserAccessOptions) {
    this.#origins = new Set(cors);
    this.#hosts = new Set(hostWhitelist);
  }

  /** Headers for every response to this request. */
  headers({ headers: { origin } }: HttpRequest): Record<string, string> {
    const allowed = this.#origins.has('*') ? '*' : origin;
    if (allowed === undefined || !this.#origins.has(allowed)) return {};
    return {
      'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE',
      'access-control-allow-origin': allowed,
      'access-control-allow-headers': 'accept, content-type, authorization',
      ...(allowed === '*' ? {} : { vary: 'Origin' }),
    };
  }

  /** Why no page or method answers this request, or undefined. Preflights end here, too. */
  answer(request: HttpRequest): HttpReply | undefined {
    const host = hostOf(request);
    if (!request.isSecure && !this.#hosts.has('*') && !this.#hosts.has(host)) {
      const body = `the host ${JSON.stringify(host)} is not in --host-whitelist\n`;
      return { status: 421, headers: { 'content-type': text, 'x-content-type-options': 'nosniff' }, body };
    }
    return request.method === 'OPTIONS' ? { status: 200, headers: this.headers(request), body: '' } : undefined;
  }

  /** Whether the request comes from a page whose origin may not call the API. */
  isForeign({ headers: { origin } }: HttpRequest): boolean {
    return origin !== undefined && !this.#origins.has('*') && !this.#origins.has(origin);
  }

  /** The same pages, behind these rules. */
  guard(pages: HttpHandler): HttpHandler {
    return async (request) => {
      const answer = this.answer(request);
      if (answer !== undefined) return answer;
      const reply = await pages(request);
      return { ...reply, headers: { ...reply.headers, ...this.headers(request) } };
    };
  }
}

/** The name by which the client reached the server, without the port. */
function hostOf({ headers }: HttpRequest): string {
  const authority = headers.host ?? headers[':authority'];
  const host = typeof authority === 'string' ? authority : '';
  const bracketed = /^\[([^\]]*)\]/.exec(host);
  return bracketed?.[1] ?? host.replace(/:\d*$/, '');
}
