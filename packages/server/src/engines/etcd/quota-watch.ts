import { etcdserverpb } from '@tenure/protocol';
import { EngineError } from '../engine-error.ts';
import type { EtcdClient } from './etcd-client.ts';
import { engineErrorOf } from './engine-error-of.ts';

/** etcd before 3.6 does not tell its quota; this is its default. */
const defaultQuotaBytes = 2 * 1024 * 1024 * 1024;
/** etcd is asked again after so many bytes of a snapshot, or earlier where it has little room. */
const bytesPerLook = 16 * 1024 * 1024;
/** A snapshot stops here, so that there is room for the log: etcd at its quota takes no write of anybody any more. */
const highestUse = 0.9;
/** With less than this below its quota etcd refuses a part, and raises an alarm that stops everybody's writes. */
const smallestRestBytes = 2 * 1024 * 1024;
/**
 * For each byte that is stored, etcd's database may grow by as many. It keeps at least two values in a page: where a
 * commit follows each part, it writes the parts beside it anew, and has the old pages back only two commits later.
 */
const largestGrowth = 3;

/**
 * Keeps snapshots from driving etcd into its quota, which would end all writes until an operator comes. etcd tells the
 * size that its database had at the last commit, which comes ten times a second: on a fast disk much of a snapshot is
 * not in it yet. So the bytes of a snapshot are also counted here, on top of what was in use before it.
 */
export class QuotaWatch {
  readonly #client: EtcdClient;
  readonly #quotaBytes: number;
  #bytesLeft = 0;
  #bytesWritten = 0;
  /** Before the first look of this snapshot there is none. */
  #bytesBefore: number | undefined;

  /** `quotaBytes` is what etcd was started with; it is asked for its own word first. */
  constructor(client: EtcdClient, quotaBytes = defaultQuotaBytes) {
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

  /** Resolves with how many bytes, `bytes` or more, may be stored before the next look. */
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
      throw engineErrorOf('etcd did not tell how much room it has', error, 'unavailable');
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
