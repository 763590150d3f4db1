import type { MessageInitShape } from '@bufbuild/protobuf';
import type { etcdserverpb } from '@tenure/protocol';
import { rangeOf } from './key-range.ts';
import type { KeyRange } from './key-range.ts';
import type { Bytes } from './key-value.ts';
import type { DeleteOptions, GetOptions, PutOptions } from './kv-options.ts';
import { putRequest, rangeRequest } from './kv-requests.ts';

/** One step of a transaction. */
export type Operation = MessageInitShape<typeof etcdserverpb.RequestOpSchema>;

/** The operations of a transaction. */
export const operation = {
  put: (key: Bytes, value: Bytes, options: PutOptions = {}): Operation => ({
    request: { case: 'requestPut', value: putRequest(key, value, options) },
  }),
  get: (range: KeyRange, options: GetOptions = {}): Operation => ({
    request: { case: 'requestRange', value: rangeRequest(range, options) },
  }),
  delete: (range: KeyRange, options: DeleteOptions = {}): Operation => ({
    request: { case: 'requestDeleteRange', value: { ...rangeOf(range), prevKv: options.prevKv === true } },
  }),
};
