/** RFC 7541, appendix A. The first entry has index 1. */
const entries: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
];

/** The number of entries. An index above it names an entry of the dynamic table. */
export const staticTableLength = entries.length;

/** By index; index 0 names no entry. */
export const staticNames: readonly string[] = ['', ...entries.map(([name]) => name)];
export const staticValues: readonly string[] = ['', ...entries.map(([, value]) => value)];

interface StaticName {
  /** The first entry with the name. */
  readonly index: number;
  readonly indexByValue: ReadonlyMap<string, number>;
}

export const staticTableByName: ReadonlyMap<string, StaticName> = new Map(
  [...new Set(entries.map(([name]) => name))].map((name) => [name, indexesOf(name)]),
);

function indexesOf(name: string): StaticName {
  const own = entries.flatMap(([other, value], position) => (other === name ? [[value, position + 1] as const] : []));
  return { index: staticNames.indexOf(name), indexByValue: new Map(own) };
}
