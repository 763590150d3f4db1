import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from '@tenure/test-support';
import { methods, statusOf } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { answers } from './answers.ts';
import { MeasuredProcess } from './measured-process.ts';

const agreeTimeoutMs = 60_000;
const retryMs = 10;

/** The parts of a cluster. */
export interface ClusterPlan {
  /** The members: the client address of each, host:port, and how to start and restart it. */
  readonly members: readonly { readonly address: string; readonly command: Command }[];
  /** Running infrastructure, such as a database; it is stopped with the cluster. */
  readonly below: readonly { cpuMs(): number; stop(): Promise<void> }[];
}

/** One of the compared systems, with three servers. */
export interface ClusterKind {
  readonly name: string;
  /** `folder` is created for the run and deleted at the end. */
  plan(folder: string): Promise<ClusterPlan>;
}

/** Processor time in ms, of the members and the infrastructure. */
export interface ClusterCpu {
  readonly membersMs: number;
  readonly belowMs: number;
}

/** Three servers of one system on fresh folders, as processes of this machine. */
export class MeasuredCluster {
  readonly kind: ClusterKind;
  readonly #folder: string;
  #plan: ClusterPlan = { members: [], below: [] };
  #processes: (MeasuredProcess | undefined)[] = [];

  private constructor(kind: ClusterKind) {
    this.kind = kind;
    this.#folder = mkdtempSync(join(tmpdir(), 'tenure-bench-cluster-'));
  }

  static async start(kind: ClusterKind): Promise<MeasuredCluster> {
    const cluster = new MeasuredCluster(kind);
    try {
      cluster.#plan = await kind.plan(cluster.#folder);
      await Promise.all(cluster.#plan.members.map((_, at) => cluster.startMember(at)));
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** host:port of each member. */
  get addresses(): readonly string[] {
    return this.#plan.members.map(({ address }) => address);
  }

  /** The address of the member that all living members report as leader, awaited. */
  async leader(): Promise<string> {
    const deadlineMs = performance.now() + agreeTimeoutMs;
    for (;;) {
      const living = this.addresses.filter((_, at) => this.#processes[at]?.hasEnded === false);
      const views = await Promise.all(living.map((address) => leadershipSeenBy(address)));
      const leaders = new Set(views.map((view) => view?.leader));
      const at = views.findIndex((view) => view !== undefined && view.leader !== 0n && view.leader === view.member);
      if (leaders.size === 1 && at >= 0) return living[at] ?? '';
      if (performance.now() > deadlineMs) throw new Error(`the members of ${this.kind.name} agree on no leader`);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  /** Starts a member, also a killed one, on its folder and at its address; resolves when it responds. */
  async startMember(at: number): Promise<void> {
    const member = this.#plan.members[at];
    if (member === undefined) throw new Error(`there is no member ${at}`);
    const { address, command } = member;
    this.#processes[at] = await MeasuredProcess.start(command, () => answers(address));
  }

  /** Kills a member with SIGKILL. */
  async kill(at: number): Promise<void> {
    await this.#processes[at]?.end('SIGKILL');
  }

  cpu(): ClusterCpu {
    const sum = (processes: readonly ({ cpuMs(): number } | undefined)[]) =>
      processes.reduce((total, each) => total + (each?.cpuMs() ?? 0), 0);
    return { membersMs: sum(this.#processes), belowMs: sum(this.#plan.below) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map(async (each) => each?.end()));
    for (const each of this.#plan.below) await each.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function leadershipSeenBy(address: string): Promise<{ member: bigint; leader: bigint } | undefined> {
  const connection = await GrpcConnection.open(address).catch(() => undefined);
  try {
    return connection && statusOf(await connection.unary(methods.status, Buffer.alloc(0)));
  } catch {
    return undefined;
  } finally {
    connection?.close();
  }
}
