/** The contents of PEM files. Without `ca`, the authorities that Node trusts. */
export interface EtcdTls {
  readonly ca?: Uint8Array;
  /** The certificate of this client, with `key`. */
  readonly cert?: Uint8Array;
  readonly key?: Uint8Array;
  /** The name in the server's certificate, when it is not the endpoint's. */
  readonly serverName?: string;
}

export interface EtcdOptions {
  /** `host:port` of each server; `http://` and `https://` may stand before it. The last asks for TLS. */
  readonly endpoints: string | readonly string[];
  readonly tls?: EtcdTls;
  readonly user?: string;
  readonly password?: string;
  /** How long one call may take in all, with what is repeated of it. 5 s by default. */
  readonly timeoutMs?: number;
  /** A call fails at once when no server takes a connection, instead of trying until its time is up. */
  readonly failFast?: boolean;
}
