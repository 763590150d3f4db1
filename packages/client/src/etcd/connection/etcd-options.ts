/** The contents of PEM files. Without `ca`, Node's trusted authorities. */
export interface EtcdTls {
  readonly ca?: Uint8Array;
  /** The certificate of this client, with `key`. */
  readonly cert?: Uint8Array;
  readonly key?: Uint8Array;
  /** The name in the server's certificate, if it differs from the endpoint. */
  readonly serverName?: string;
}

export interface EtcdOptions {
  /** `host:port` of each server; a prefix `http://` or `https://` is allowed. `https://` enables TLS. */
  readonly endpoints: string | readonly string[];
  readonly tls?: EtcdTls;
  readonly user?: string;
  readonly password?: string;
  /** The limit of one call, with all its retries. 5 s by default. */
  readonly timeoutMs?: number;
  /** A call fails at once when no server accepts a connection, instead of retrying until its time is up. */
  readonly failFast?: boolean;
}
