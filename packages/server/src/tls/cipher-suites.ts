/** The cipher suites of TLS 1.2 under the names that Go and etcd use, with OpenSSL's names. */
const openSslNames: ReadonlyMap<string, string> = new Map([
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
  // Go's older names of the two before.
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
]);

/**
 * Known to Go and not offered: without forward secrecy, or with CBC or RC4. HTTP/2 forbids all of them, so that a gRPC
 * client could not use the connection.
 */
const withoutHttp2 = /^TLS_(RSA|ECDHE_RSA|ECDHE_ECDSA)_WITH_[A-Z0-9_]+$/;
/** Neither Go nor Node lets them be chosen one by one together with those of TLS 1.2. */
const ofTls13 = /^TLS_(AES_128_GCM_SHA256|AES_256_GCM_SHA384|CHACHA20_POLY1305_SHA256)$/;

/** AES with 128 bits first: it takes the least time. */
const tls13Suites = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';

/** Suites with forward secrecy and authenticated encryption, those that HTTP/2 allows. */
export const defaultCiphers = [tls13Suites, ...new Set(openSslNames.values())].join(':');

/** The OpenSSL cipher list for comma-separated names, or the reason why there is none. */
export function parseCipherSuites(text: string): { readonly ciphers: string } | { readonly fault: string } {
  if (text === '') return { ciphers: defaultCiphers };
  const chosen: string[] = [];
  for (const name of text.split(',').map((each) => each.trim())) {
    const known = openSslNames.get(name);
    if (known !== undefined) chosen.push(known);
    else if (ofTls13.test(name)) return { fault: `${name} is of TLS 1.3, whose suites cannot be chosen` };
    else if (withoutHttp2.test(name)) return { fault: `${name} is not for HTTP/2, and so not for gRPC` };
    else return { fault: `${JSON.stringify(name)} is no cipher suite of TLS 1.2` };
  }
  return { ciphers: [tls13Suites, ...new Set(chosen)].join(':') };
}
