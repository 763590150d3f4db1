/** A reply with a header. */
export interface HeaderSeen {
  readonly client: number;
  readonly server: string;
  /** The call that it answered. */
  readonly call: string;
  readonly calledMs: number;
  readonly returnedMs: number;
  readonly revision: number;
}

/**
 * Revisions that went back: replies to calls that were made after their client had seen a later revision. With
 * `acrossClients` it counts the revisions that any client had seen by then.
 */
export function checkHeaders(headers: readonly HeaderSeen[], options: { readonly acrossClients: boolean }): string[] {
  const groups = new Map<number, HeaderSeen[]>();
  for (const header of headers) {
    const group = options.acrossClients ? 0 : header.client;
    const list = groups.get(group);
    if (list === undefined) groups.set(group, [header]);
    else list.push(header);
  }
  return [...groups.values()].flatMap(goneBack);
}

function goneBack(headers: readonly HeaderSeen[]): string[] {
  const problems: string[] = [];
  const byReturn = headers.toSorted((a, b) => a.returnedMs - b.returnedMs);
  let ended = 0;
  let newest: HeaderSeen | undefined;
  for (const header of headers.toSorted((a, b) => a.calledMs - b.calledMs)) {
    for (let next = byReturn[ended]; next !== undefined && next.returnedMs < header.calledMs; next = byReturn[ended]) {
      if (newest === undefined || next.revision > newest.revision) newest = next;
      ended += 1;
    }
    if (newest !== undefined && header.revision < newest.revision) {
      problems.push(`${describe(header)} after ${describe(newest)}`);
    }
  }
  return problems;
}

function describe({ client, server, call, revision, calledMs, returnedMs }: HeaderSeen): string {
  const time = `${calledMs.toFixed(2)}..${returnedMs.toFixed(2)} ms`;
  return `revision ${revision} to client ${client} by ${server} (${call}, ${time})`;
}
