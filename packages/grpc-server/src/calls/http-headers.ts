import type { OutgoingHttpHeaders } from 'node:http';
import { HeaderBlock } from '../http2/header-block.ts';

/** The head of a response that is not gRPC, with the date that HTTP wants. */
export function headerBlockOf(status: number, headers: OutgoingHttpHeaders): HeaderBlock {
  const fields: (readonly [string, string, 'plain'])[] = [[':status', String(status), 'plain']];
  for (const [name, value] of Object.entries(headers)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined) fields.push([name.toLowerCase(), String(each), 'plain']);
    }
  }
  fields.push(['date', new Date().toUTCString(), 'plain']);
  return HeaderBlock.once(fields);
}
