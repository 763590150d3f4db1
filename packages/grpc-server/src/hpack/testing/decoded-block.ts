import { HpackDecoder } from '../hpack-decoder.ts';
import type { Field } from './hpack-js-peer.ts';

export interface DecodedBlock {
  readonly fields: readonly Field[];
  readonly isWithinLimits: boolean;
}

/** Decodes a block that stands between other bytes, none of which may be read. */
export function decodeBlock(decoder: HpackDecoder, block: Uint8Array): DecodedBlock {
  const bytes = Buffer.concat([Buffer.alloc(3, 0xff), block, Buffer.alloc(3, 0xff)]);
  const fields: Field[] = [];
  const isWithinLimits = decoder.decode(bytes, 3, 3 + block.length, (name, value) => fields.push([name, value]));
  return { fields, isWithinLimits };
}

export function fieldsOf(decoder: HpackDecoder, block: Uint8Array): readonly Field[] {
  return decodeBlock(decoder, block).fields;
}

/** Limits that no test means to reach. */
export function generousDecoder(maxTableBytes = 4096): HpackDecoder {
  return new HpackDecoder({ maxTableBytes, maxHeaderListBytes: 1 << 20, maxHeaderPairs: 10_000 });
}
