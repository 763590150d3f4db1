import type { IncomingHttpHeaders } from 'node:http2';

/** Headers of which a message has one; a second one is ignored, as by node:http. */
const singleHeaders: ReadonlySet<string> = new Set([
  'age',
  'authorization',
  'content-length',
  'content-type',
  'etag',
  'expires',
  'from',
  'grpc-encoding',
  'grpc-timeout',
  'host',
  'if-modified-since',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'retry-after',
  'user-agent',
]);

/** Headers of one connection, which HTTP/2 does not have (RFC 9113, section 8.2.2). */
const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

const pseudoHeaders: ReadonlySet<string> = new Set([':method', ':scheme', ':path', ':authority']);

/**
 * The headers of one request as they are decoded, with the rules of RFC 9113, section 8.2 and 8.3: `fault` says which
 * one was broken first. The values of a header that comes several times are joined, as node:http2 does.
 */
export class RequestHeaders {
  readonly headers: IncomingHttpHeaders = Object.create(null) as IncomingHttpHeaders;
  fault: string | undefined;
  readonly #areTrailers: boolean;
  #hasRegular = false;

  constructor(areTrailers: boolean) {
    this.#areTrailers = areTrailers;
  }

  add(name: string, value: string): void {
    if (this.fault !== undefined) return;
    if (name.charCodeAt(0) === colon) this.#addPseudo(name, value);
    else this.#addRegular(name, value);
  }

  /** To be called after the last header. */
  finish(): void {
    if (this.#areTrailers || this.fault !== undefined) return;
    const { headers } = this;
    if (headers[':method'] === 'CONNECT') this.fault = 'CONNECT is not supported';
    else if (headers[':method'] === undefined) this.fault = 'no :method';
    else if (headers[':scheme'] === undefined) this.fault = 'no :scheme';
    else if (headers[':path'] === undefined) this.fault = 'no :path';
    else if (!isPath(headers[':path'], headers[':method'])) this.fault = 'a :path that is no path';
  }

  /** The value of content-length, -1 without it; undefined when it is not a number. */
  contentLength(): number | undefined {
    const value = this.headers['content-length'];
    if (value === undefined) return -1;
    return /^[0-9]{1,15}$/.test(value) ? Number(value) : undefined;
  }

  #addPseudo(name: string, value: string): void {
    if (this.#areTrailers) this.fault = 'a pseudo-header in trailers';
    else if (this.#hasRegular) this.fault = 'a pseudo-header after other headers';
    else if (!pseudoHeaders.has(name)) this.fault = 'an unknown pseudo-header';
    else if (this.headers[name] !== undefined) this.fault = 'a pseudo-header twice';
    else if (!isFieldValue(value)) this.fault = 'a header with a value that is not allowed';
    else this.headers[name] = value;
  }

  #addRegular(name: string, value: string): void {
    this.#hasRegular = true;
    if (!isFieldName(name)) this.fault = 'a header with a name that is not allowed';
    else if (!isFieldValue(value)) this.fault = 'a header with a value that is not allowed';
    else if (connectionHeaders.has(name)) this.fault = `the header ${name}`;
    else if (name === 'te' && value !== 'trailers') this.fault = 'a te other than trailers';
    else this.#join(name, value);
  }

  #join(name: string, value: string): void {
    const { headers } = this;
    const before = headers[name];
    if (name === 'set-cookie') {
      if (Array.isArray(before)) before.push(value);
      else headers[name] = [value];
    } else if (before === undefined) {
      headers[name] = value;
    } else if (!singleHeaders.has(name)) {
      headers[name] = `${String(before)}${name === 'cookie' ? '; ' : ', '}${value}`;
    } else if (name === 'content-length' && before !== value) {
      this.fault = 'two content-lengths';
    }
  }
}

const colon = 0x3a;
const slash = 0x2f;

/** A token of HTTP (RFC 9110, section 5.6.2) without upper case. */
const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** No control characters, and no space at either end (RFC 9113, section 8.2.1). */
const fieldValue = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** Names that nearly every request has: looking them up is faster than checking them. */
const checkedNames = new Set([
  ...singleHeaders,
  'accept',
  'accept-encoding',
  'te',
  'cookie',
  'token',
  'grpc-accept-encoding',
]);

/** RFC 9113, section 8.3.1. */
function isPath(path: string, method: string): boolean {
  return path.charCodeAt(0) === slash || (path === '*' && method === 'OPTIONS');
}

function isFieldName(name: string): boolean {
  return checkedNames.has(name) || fieldName.test(name);
}

function isFieldValue(value: string): boolean {
  return fieldValue.test(value);
}
