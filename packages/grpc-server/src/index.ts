export { HpackDecoder } from './hpack/hpack-decoder.ts';
export { HpackEncoder } from './hpack/hpack-encoder.ts';
export { HpackError } from './hpack/hpack-error.ts';
