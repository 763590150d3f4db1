/**
 * A snapshot is a stream of bytes: a preamble, then blocks, the last of which is `end`. Where the stream is cut into
 * chunks has no meaning.
 *
 *   preamble   the 8 bytes of `magic`, then the format version as u32
 *   block      u32 length of the payload, u8 kind, u32 check of these 5 bytes, payload, u32 check of the payload
 *
 *
 * Fixed-size integers are little-endian. Each check is a running hash that goes on from the one before it, so that no
 * block can be lost, doubled or moved unnoticed. A payload holds whole records; integers in them are LEB128
 * (`varint`), times are float64, ids are int64, keys and values one byte per char, other text one varint per UTF-16
 * unit.
 *
 *   cluster    ids, epoch, leader, time, members, alarms, ends of epochs, revisions, from format 2 on limits of
 *              transactions: one record, first
 *   leases     one record each, in order of ids
 *   base       the keys as they were just before the oldest held revision, in byte order
 *   history    the oldest held revision and all after it: number of events, then the events
 *   end        how many records there were, and the rolling hash of the newest revision: one record, last
 *
 *
 * The bytes are a function of the state alone: two servers that applied the same entries write the same snapshot.
 */
export const magic = 'TENURE\r\n';

export const formatVersion = 2;

/**
 * A snapshot whose cluster has no limits of transactions: as servers wrote it that knew of none, so that they can read
 * it as long as no entry has set limits.
 */
export const formatWithoutLimits = 1;

export const preambleBytes = 12;

export const blockHeaderBytes = 9;

export const blockTrailerBytes = 4;

/** A chunk that leaves the writer is at most this long. */
export const maxChunkBytes = 64 * 1024;

/** A block is closed when its payload has reached this length, so that most blocks fit one chunk. */
export const fullPayloadBytes = 60 * 1024;

/** A reader takes a longer block for damage: a record is one lease or one version of one key. */
export const maxPayloadBytes = 512 * 1024 * 1024;

export type BlockKind = 1 | 2 | 3 | 4 | 5;

export const clusterBlock = 1;
export const leaseBlock = 2;
export const baseBlock = 3;
export const historyBlock = 4;
export const endBlock = 5;
