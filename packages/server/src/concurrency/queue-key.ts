/** The keys with one prefix, as the range of a request. */
export interface KeyPrefix {
  readonly key: Buffer<ArrayBuffer>;
  readonly rangeEnd: Buffer<ArrayBuffer>;
}

const slash = 0x2f;

/**
 * All keys below the name of a lock or an election, those of nested names too: 'a' waits for 'a/b/1'. Etcd's clients
 * make the same range of the name.
 */
export function queueOf(name: Uint8Array): KeyPrefix {
  const below = (last: number): Buffer<ArrayBuffer> => Buffer.concat([name, Uint8Array.of(last)]);
  return { key: below(slash), rangeEnd: below(slash + 1) };
}

/** The key of a lease in the queue. A negative id has a minus sign, as Go writes it. */
export function queueKey({ key }: KeyPrefix, lease: bigint): Buffer<ArrayBuffer> {
  return Buffer.concat([key, Buffer.from(lease.toString(16), 'latin1')]);
}
