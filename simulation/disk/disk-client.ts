import { create, fromBinary, toBinary, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { CallError, type ClientConnection } from '../world/client-connection.ts';
import type { Coverage } from '../world/coverage.ts';
import type { DiskChecker } from './disk-checker.ts';

export interface DiskClientOptions {
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly connection: ClientConnection;
  readonly checker: DiskChecker;
  readonly coverage: Coverage;
  readonly longestPauseMs: number;
}

const keys = 12;
/** How long a client waits for a reply. */
const callLimitMs = 2_000;
const schemas = etcdserverpb;

/** A client that sends one request after the other, and tells the checker what was acknowledged. */
export class DiskClient {
  readonly #options: DiskClientOptions;
  #lease: { readonly id: bigint; readonly ttlMs: number } | undefined;
  #revision = 0;
  #isStopped = false;

  constructor(options: DiskClientOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<void> {
    const { clock, random, longestPauseMs, coverage } = this.#options;
    for (;;) {
      await new Promise<void>((resolve) => void clock.after(random.between(1, longestPauseMs), resolve));
      if (this.#isStopped) return;
      await this.#request().catch((error: unknown) => {
        if (!(error instanceof CallError)) throw error;
        coverage.count('disk: request failed');
      });
    }
  }

  async #request(): Promise<void> {
    const drawn = this.#options.random.below(100);
    if (drawn < 60) return this.#put();
    if (drawn < 65) return this.#delete();
    if (drawn < 70) return this.#compact();
    if (this.#lease === undefined) return this.#grant();
    if (drawn < 95) return this.#renew(this.#lease);
    const { id } = this.#lease;
    this.#lease = undefined;
    // Otherwise it expires.
    if (drawn < 98) await this.#revoke(id);
  }

  async #put(): Promise<void> {
    const { random } = this.#options;
    // No byte of it is zero: a record of which a whole unit holds zeros looks as if it had not been written to its end.
    const value = Buffer.alloc(random.chance(0.1) ? random.below(2_000) : random.below(60), random.integer(1, 255));
    const lease = random.chance(0.4) ? (this.#lease?.id ?? 0n) : 0n;
    const request = { key: Buffer.from(`key ${random.below(keys)}`), value, lease };
    const reply = await this.#call('KV/Put', schemas.PutRequestSchema, request, schemas.PutResponseSchema);
    this.#acknowledged(reply.header);
  }

  async #delete(): Promise<void> {
    const request = { key: Buffer.from(`key ${this.#options.random.below(keys)}`) };
    const reply = await this.#call(
      'KV/DeleteRange',
      schemas.DeleteRangeRequestSchema,
      request,
      schemas.DeleteRangeResponseSchema,
    );
    this.#acknowledged(reply.header);
  }

  async #compact(): Promise<void> {
    const revision = BigInt(Math.max(1, this.#revision - this.#options.random.below(10)));
    const { CompactionRequestSchema, CompactionResponseSchema } = schemas;
    const reply = await this.#call('KV/Compact', CompactionRequestSchema, { revision }, CompactionResponseSchema);
    this.#acknowledged(reply.header);
    this.#options.coverage.count('disk: compaction');
  }

  async #grant(): Promise<void> {
    const { clock, checker, random, coverage } = this.#options;
    const sentMs = clock.monotonicMs();
    const request = { TTL: BigInt(random.integer(1, 3)) };
    const { LeaseGrantRequestSchema, LeaseGrantResponseSchema } = schemas;
    const reply = await this.#call('Lease/LeaseGrant', LeaseGrantRequestSchema, request, LeaseGrantResponseSchema);
    this.#lease = { id: reply.ID, ttlMs: Number(reply.TTL) * 1000 };
    checker.renewed(reply.ID, this.#lease.ttlMs, sentMs);
    this.#acknowledged(reply.header);
    coverage.count('disk: grant');
  }

  async #renew({ id, ttlMs }: { readonly id: bigint; readonly ttlMs: number }): Promise<void> {
    const { clock, checker, connection, coverage } = this.#options;
    const { LeaseKeepAliveRequestSchema: schema, LeaseKeepAliveResponseSchema } = schemas;
    const sentMs = clock.monotonicMs();
    const request = toBinary(schema, create(schema, { ID: id }));
    // A stream with one message looks like a call.
    const reply = await connection.call('/etcdserverpb.Lease/LeaseKeepAlive', request, callLimitMs);
    if (fromBinary(LeaseKeepAliveResponseSchema, reply).TTL > 0n) {
      checker.renewed(id, ttlMs, sentMs);
      coverage.count('disk: renewal acknowledged');
    } else this.#lease = undefined;
  }

  async #revoke(id: bigint): Promise<void> {
    const { LeaseRevokeRequestSchema, LeaseRevokeResponseSchema } = schemas;
    const reply = await this.#call(
      'Lease/LeaseRevoke',
      LeaseRevokeRequestSchema,
      { ID: id },
      LeaseRevokeResponseSchema,
    );
    this.#acknowledged(reply.header);
  }

  #acknowledged(header: etcdserverpb.ResponseHeader | undefined): void {
    const revision = Number(header?.revision ?? 0);
    this.#revision = Math.max(this.#revision, revision);
    this.#options.checker.acknowledged(revision);
    this.#options.coverage.count('disk: write acknowledged');
  }

  async #call<Request extends DescMessage, Response extends DescMessage>(
    method: string,
    requestSchema: Request,
    request: MessageInitShape<Request>,
    responseSchema: Response,
  ) {
    const bytes = toBinary(requestSchema, create(requestSchema, request));
    const reply = await this.#options.connection.call(`/etcdserverpb.${method}`, bytes, callLimitMs);
    return fromBinary(responseSchema, reply);
  }
}
