import { frameHeadroomBytes } from '@tenure/codec';
import type { DescMessage } from '@bufbuild/protobuf';
import { ReplyEncoder } from './reply-encoder.ts';

/** One message of a stream: a line of JSON. */
export function resultLine(descriptor: DescMessage, framed: Buffer): Buffer {
  return Buffer.from(`{"result":${ReplyEncoder.encode(descriptor, framed.subarray(frameHeadroomBytes))}}\n`);
}
