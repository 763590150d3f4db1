/**
 * A snapshot is a stream of bytes: a preamble, then blocks, the last of which is `end`. The chunk boundaries of the
 * stream have no meaning.
 *
 *   preamble   the 8 bytes of `magic`, then the format version as u32
 *   block      u32 length of the payload, u8 kind, u32 check of these 5 bytes, payload, u32 check of the payload
 *
 * Fixed-size integers are little-endian. Each check is a running hash that continues the previous one, so that a lost,
 * duplicate or moved block is detected. A payload has whole records; integers in them are LEB128 (`varint`), times are
 * float64, ids are int64, keys and values one byte per char, other text one varint per UTF-16 unit.
 *
 *   cluster    ids, epoch, leader, time, members, alarms, ends of epochs, revisions, from format 2 on limits of
 *              transactions, from format 3 on users and roles, from format 4 on peer URLs of members: one record, first
 *   leases     one record each, ordered by id
 *   base       the keys as they were just before the oldest held revision, in byte order
 *   history    the oldest held revision and all after it: number of events, then the events
 *   end        the number of records, and the rolling hash of the newest revision: one record, last
 *
 * The bytes are a function of the state alone: two servers that applied the same entries write the same snapshot.
 */
export const magic = 'TENURE\r\n';

export const formatVersion = 4;

/**
 * A snapshot is written in the format from before what its cluster does not use: peer URLs, then auth data, then limits
 * of transactions. So servers of that version can read it as long as no entry has set them.
 */
export const formatWithAuth = 3;
export const formatWithLimits = 2;
export const formatWithoutLimits = 1;

export const preambleBytes = 12;

export const blockHeaderBytes = 9;

export const blockTrailerBytes = 4;

/** The maximum size of a chunk from the writer. */
export const maxChunkBytes = 64 * 1024;

/** A block is closed when its payload has reached this size, so that most blocks fit one chunk. */
export const fullPayloadBytes = 60 * 1024;

/** A reader treats a longer block as damage: a record is one lease or one version of one key. */
export const maxPayloadBytes = 512 * 1024 * 1024;

export type BlockKind = 1 | 2 | 3 | 4 | 5;

export const clusterBlock = 1;
export const leaseBlock = 2;
export const baseBlock = 3;
export const historyBlock = 4;
export const endBlock = 5;
