import { etcdserverpb } from '@tenure/protocol';
import { create, toBinary } from '@bufbuild/protobuf';
import type { Fault, FaultKind } from './servers-scenario.ts';
import type { ServerProcess } from './world/server-process.ts';
import type { Machine, World } from './world/world.ts';

/**
 * A wall clock is not stepped so soon after a suspension: the step could hide the suspension from every server.
 */
const calmMs = 6_000;

/** Slow answers are late by at least this, and at most by so much more: some come after the next leader has claimed. */
const leastSlowMs = 50;
const slowestAnswerMs = 3_000;

/** Faults that need a process that runs; the others also strike one that is stalled or suspended. */
const faultsOfRunning: ReadonlySet<FaultKind> = new Set(['stall', 'busy', 'suspend', 'wall step', 'close']);

/** Injects the faults of a scenario, until they are healed. */
export class Faults {
  readonly #world: World;
  #isHealed = false;
  /** Starts the machines that are down. */
  readonly #down = new Set<() => void>();

  constructor(world: World) {
    this.#world = world;
  }

  start(faults: readonly Fault[], engineTrouble: number): void {
    this.#world.log.trouble = engineTrouble;
    for (const fault of faults) {
      this.#world.schedule.at(fault.atMs, () => {
        if (!this.#isHealed) this.#strike(fault);
      });
    }
  }

  /** No further fault begins, and the lasting ones end: stopped processes continue within some seconds. */
  heal(): void {
    const { log, network, trace } = this.#world;
    this.#isHealed = true;
    trace.note('faults', () => 'are healed');
    log.isRough = false;
    log.trouble = 0;
    log.isAway = false;
    log.cutOff.clear();
    log.slowMs.clear();
    log.regainStandby('back');
    network.healAll();
    for (const machine of this.#world.machines) this.#resume(machine.process);
    for (const restart of this.#down) restart();
  }

  #strike(fault: Fault): void {
    const { machines, trace, coverage } = this.#world;
    const leading = fault.atLeader ? this.#world.leading() : undefined;
    const machine = leading ?? machines[fault.machine];
    if (machine === undefined || machine.process.clock.dead) return;
    if (!this.#canStrike(fault, machine)) return;
    trace.note(machine.name, () => `fault: ${fault.kind} for ${Math.round(fault.lastsMs)} ms`);
    coverage.count(`fault: ${fault.kind}`);
    this.#carryOut(fault, machine);
  }

  /** Whether it would have an effect, and hides nothing that the servers must be able to see. */
  #canStrike({ kind, other }: Fault, { name, process, calmFromMs }: Machine): boolean {
    if (process.clock.stopped && faultsOfRunning.has(kind)) return false;
    const target = this.#world.machines[other]?.name;
    switch (kind) {
      case 'suspend':
      case 'wall step':
        return this.#world.schedule.nowMs >= calmFromMs;
      case 'cut one way':
        return target !== name;
      case 'move leader':
        return process.server?.state.members.some((member) => member.name === target) ?? false;
      default:
        return true;
    }
  }

  #carryOut({ kind, lastsMs, amount, other }: Fault, machine: Machine): void {
    const { log, network, machines, schedule } = this.#world;
    const otherName = machines[other]?.name ?? machine.name;
    switch (kind) {
      case 'stall':
      case 'suspend':
        this.#stop(machine, lastsMs, kind === 'suspend');
        break;
      case 'busy':
        this.#keepBusy(machine, lastsMs, amount);
        break;
      case 'kill':
        this.#world.kill(machine);
        this.#restartAfter(machine, lastsMs);
        break;
      case 'close':
        this.close(machine, lastsMs);
        break;
      case 'wall step':
        this.#stepWall(machine, amount * 10_000 - 5_000);
        break;
      case 'streams break':
        network.breakStreams(machine.name, 'servers');
        break;
      case 'clients cut off':
        network.breakStreams(machine.name, 'clients');
        break;
      case 'cut one way':
        network.cut(machine.name, otherName);
        schedule.in(lastsMs, () => network.heal(machine.name, otherName));
        break;
      case 'engine away':
        this.#loseEngine(lastsMs);
        break;
      case 'engine cut off': {
        const { clock } = machine.process;
        log.cutOff.add(clock);
        schedule.in(lastsMs, () => log.cutOff.delete(clock));
        break;
      }
      case 'slow answers':
        this.#slowAnswers(machine, lastsMs, slowestAnswerMs * amount ** 3);
        break;
      case 'standby away':
        log.loseStandby();
        schedule.in(lastsMs, () => log.regainStandby(amount < 0.5 ? 'back' : 'promoted'));
        break;
      case 'move leader':
        // Operators do so when the leader is in trouble, too.
        if (amount < 0.3) this.#slowAnswers(machine, lastsMs, amount * 2_000);
        else if (amount < 0.6) this.#loseEngine(lastsMs);
        this.#moveLeader(machine, machines[other]);
        break;
    }
  }

  #loseEngine(lastsMs: number): void {
    const { log, schedule } = this.#world;
    log.isAway = true;
    schedule.in(lastsMs, () => (log.isAway = false));
  }

  #slowAnswers({ process: { clock } }: Machine, lastsMs: number, byMs: number): void {
    const { log, schedule } = this.#world;
    log.slowMs.set(clock, leastSlowMs + byMs);
    schedule.in(lastsMs, () => log.slowMs.delete(clock));
  }

  #stop(machine: Machine, lastsMs: number, isSuspended: boolean): void {
    const { clock } = machine.process;
    const { schedule } = this.#world;
    if (isSuspended) {
      clock.suspend();
      machine.calmFromMs = schedule.nowMs + lastsMs + calmMs;
    } else clock.pause();
    const { process } = machine;
    schedule.in(lastsMs, () => this.#resume(process));
  }

  #resume({ name, clock }: ServerProcess): void {
    if (clock.dead || !clock.stopped) return;
    this.#world.trace.note(name, () => 'continues');
    clock.resume();
  }

  /** One short stall after the other: none is long enough to be noticed by itself. */
  #keepBusy(machine: Machine, leftMs: number, amount: number): void {
    const { process } = machine;
    if (this.#isHealed || leftMs <= 0 || process.clock.stopped) return;
    const stallMs = 5 + ((amount * 997) % 1) * 145;
    const gapMs = 1 + amount * 30;
    process.clock.pause();
    this.#world.schedule.in(stallMs, () => {
      this.#resume(process);
      const left = leftMs - stallMs - gapMs;
      this.#world.schedule.in(gapMs, () => this.#keepBusy(machine, left, (amount * 7.31) % 1));
    });
  }

  /** An orderly stop, and a new start. */
  close(machine: Machine, downMs: number): void {
    const { process } = machine;
    const { violations } = this.#world;
    if (process.server === undefined) return;
    const closed = (): void => {
      if (process.clock.dead) return;
      process.kill();
      this.#restartAfter(machine, downMs);
    };
    process.close().then(closed, (error: Error) => {
      if (!process.clock.dead) violations.report('failed', `${process.name} did not close: ${error.stack}`);
      closed();
    });
  }

  /** Once healed, a machine that is down starts at once. */
  #restartAfter(machine: Machine, downMs: number): void {
    const { process } = machine;
    const restart = (): void => {
      this.#down.delete(restart);
      if (machine.process === process) this.#world.restart(machine);
    };
    this.#down.add(restart);
    this.#world.schedule.in(this.#isHealed ? 0 : downMs, restart);
  }

  #stepWall(machine: Machine, byMs: number): void {
    const { nowMs } = this.#world.schedule;
    machine.calmFromMs = nowMs + calmMs;
    machine.process.clock.stepWall(byMs);
  }

  /** An operator asks this server to transfer leadership to a member. */
  #moveLeader(machine: Machine, target: Machine | undefined): void {
    const { server } = machine.process;
    const member = server?.state.members.find(({ name }) => name === target?.name);
    if (member === undefined) return;
    const schema = etcdserverpb.MoveLeaderRequestSchema;
    const request = toBinary(schema, create(schema, { targetID: member.id }));
    const operator = { name: 'operator', clock: this.#world.clientClock() };
    const connection = this.#world.network.connect(operator, machine.process.address);
    connection.call('/etcdserverpb.Maintenance/MoveLeader', request, 5_000).catch(() => undefined);
  }
}
