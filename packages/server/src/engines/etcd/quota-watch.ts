import { etcdserverpb } from '@tenure/protocol';
import { EngineError } from '../engine-error.ts';
import type { EtcdLogClient } from './etcd-log-client.ts';
import { engineErrorOf } from './engine-error-of.ts';

/** etcd before 3.6 does not report its quota; this is its default. */
const defaultQuotaBytes = 2 * 1024 * 1024 * 1024;
/** etcd's size is read again after this many bytes of a snapshot, or earlier when little room is left. */
const bytesPerLook = 16 * 1024 * 1024;
/** A snapshot stops here, so that there is room for the log: etcd at its quota refuses every client's writes. */
const highestUse = 0.9;
/** With less than this below its quota etcd refuses a part, and raises an alarm that stops every client's writes. */
const smallestRestBytes = 2 * 1024 * 1024;
/**
 * For each stored byte, etcd's database may grow by this many. It keeps at least two values in a page: if a commit
 * follows each part, it rewrites the neighbouring parts, and reuses the old pages only two commits later.
 */
const largestGrowth = 3;

/**
 * Keeps snapshots from driving etcd into its quota, which would stop all writes until an operator intervenes. etcd
 * reports the size of its database at the last commit, ten times a second: on a fast disk much of a snapshot is not
 * included yet. So the bytes of a snapshot are also counted here, on top of the size before it.
 */
export class QuotaWatch {
  readonly #client: EtcdLogClient;
  readonly #quotaBytes: number;
  #bytesLeft = 0;
  #bytesWritten = 0;
  /** Undefined before the first size of this snapshot is read. */
  #bytesBefore: number | undefined;

  /** `quotaBytes` is etcd's configured quota; the value reported by etcd takes precedence. */
  constructor(client: EtcdLogClient, quotaBytes = defaultQuotaBytes) {
    this.#client = client;
    this.#quotaBytes = quotaBytes;
  }

  /** A new snapshot begins. Snapshots of one server are written one after another. */
  begin(): void {
    this.#bytesLeft = 0;
    this.#bytesWritten = 0;
    this.#bytesBefore = undefined;
  }

  /** Throws EngineError `unavailable` when etcd has no room for `bytes` more of a snapshot. */
  async admit(bytes: number): Promise<void> {
    if (this.#bytesLeft < bytes) this.#bytesLeft = await this.#look(bytes);
    this.#bytesLeft -= bytes;
    this.#bytesWritten += bytes;
  }

  /** Resolves with the number of bytes, at least `bytes`, that may be stored before the size is read again. */
  async #look(bytes: number): Promise<number> {
    try {
      const status = await this.#client.read(etcdserverpb.Maintenance.method.status, {});
      const quotaBytes = Number(status.dbSizeQuota) || this.#quotaBytes;
      const dbSize = Number(status.dbSize);
      this.#bytesBefore ??= Number(status.dbSizeInUse);
      const bytesInUse = Math.max(Number(status.dbSizeInUse), this.#bytesBefore + this.#bytesWritten);
      const roomBytes = Math.floor((quotaBytes - smallestRestBytes - dbSize) / largestGrowth);
      if (roomBytes < bytes || bytesInUse + bytesPerLook > quotaBytes * highestUse) {
        throw noRoom(Math.max(dbSize, bytesInUse), bytesInUse, quotaBytes);
      }
      return Math.min(bytesPerLook, roomBytes);
    } catch (error) {
      throw engineErrorOf('etcd did not report its database size', error, 'unavailable');
    }
  }
}

function noRoom(bytes: number, bytesInUse: number, quotaBytes: number): EngineError {
  const mib = (value: number): string => `${Math.round(value / 1024 / 1024)} MiB`;
  const message =
    `the snapshot does not fit into etcd: its database has ${mib(bytes)}, ${mib(bytesInUse)} of it in use, ` +
    `and its quota is ${mib(quotaBytes)}; the last snapshot stays. Compact etcd and run etcdctl defrag, ` +
    'or raise --quota-backend-bytes';
  return new EngineError('unavailable', message);
}
