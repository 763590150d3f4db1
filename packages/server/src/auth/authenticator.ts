import { anonymous, invalidToken, type Requester, type StateMachine } from '@tenure/core';
import type { Call } from '../transport/transport.ts';
import type { TokenProvider } from './token-provider.ts';

export interface AuthenticatorOptions {
  readonly state: Pick<StateMachine, 'auth'>;
  readonly tokens: Pick<TokenProvider, 'requesterOf'>;
}

const scheme = 'Bearer ';

type Credentials = Pick<Call, 'metadata' | 'connection'>;

/**
 * Finds out who makes a call, while authentication is enabled: by the token in its metadata, else by the common name of
 * the client's certificate, as etcd does. Whether that user exists and what they may do is not decided here.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** A promise only for a token that this server does not know yet. */
  requesterOf(call: Credentials): Requester | Promise<Requester> {
    const token = tokenOf(call.metadata);
    if (token === undefined) return this.#byCertificate(call);
    if (token === '') return invalidToken;
    const known = this.#options.tokens.requesterOf(token, call.metadata);
    if (known instanceof Promise) return known.then((requester) => requester ?? invalidToken);
    return known ?? invalidToken;
  }

  #byCertificate({ connection: { commonName } }: Credentials): Requester {
    if (commonName === undefined) return anonymous;
    return { user: commonName, authRevision: this.#options.state.auth.revision };
  }
}

/** Whether the call names its user by a token, valid or not. */
export function carriesToken({ metadata }: Pick<Call, 'metadata'>): boolean {
  return metadata['token'] !== undefined || metadata['authorization'] !== undefined;
}

/** gRPC clients send `token`, the gateway and others `authorization`. Of several values the first counts. */
function tokenOf(metadata: Call['metadata']): string | undefined {
  const value = metadata['token'] ?? metadata['authorization'];
  if (value === undefined) return undefined;
  const text = Array.isArray(value) ? (value[0] ?? '') : value;
  const comma = text.indexOf(',');
  const first = (comma < 0 ? text : text.slice(0, comma)).trim();
  return first.startsWith(scheme) ? first.slice(scheme.length) : first;
}
