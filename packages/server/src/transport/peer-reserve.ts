import type { Socket } from 'node:net';

/** What the reserve needs of a socket. */
export type ReservedSocket = Pick<Socket, 'remoteAddress' | 'destroy'>;

/**
 * Places for servers when clients have taken all others. Whoever knocks gets one, since nobody is known before he has
 * spoken; until he has proved to be a server he can lose it to the next. So that many who knock from one address push
 * out each other and nobody else, the oldest of the address that holds most places goes.
 */
export class PeerReserve {
  readonly #maxSockets: number;
  /** In the order in which they came. */
  readonly #unproved = new Set<ReservedSocket>();
  readonly #proved = new Set<ReservedSocket>();

  constructor(maxSockets: number) {
    this.#maxSockets = maxSockets;
  }

  get size(): number {
    return this.#unproved.size + this.#proved.size;
  }

  /** Gives the socket a place; false when servers have them all. */
  take(socket: ReservedSocket): boolean {
    if (this.#proved.size >= this.#maxSockets) return false;
    if (this.size >= this.#maxSockets) {
      const displaced = this.#toDisplace(socket.remoteAddress);
      if (displaced === undefined) return false;
      this.#unproved.delete(displaced);
      displaced.destroy();
    }
    this.#unproved.add(socket);
    return true;
  }

  /** Whether the socket has a place here and may be used for nothing but to link a server. */
  isUnproved(socket: ReservedSocket): boolean {
    return this.#unproved.has(socket);
  }

  /** A server is at the other end. Means nothing for a socket that has no place here. */
  prove(socket: ReservedSocket): void {
    if (this.#unproved.delete(socket)) this.#proved.add(socket);
  }

  giveBack(socket: ReservedSocket): void {
    this.#unproved.delete(socket);
    this.#proved.delete(socket);
  }

  /** Whoever comes counts for his address, so that he displaces his own where that would have most. */
  #toDisplace(newcomer: string | undefined): ReservedSocket | undefined {
    const counts = new Map<string | undefined, number>([[newcomer, 1]]);
    for (const { remoteAddress } of this.#unproved) counts.set(remoteAddress, (counts.get(remoteAddress) ?? 0) + 1);
    let displaced: ReservedSocket | undefined;
    for (const socket of this.#unproved) {
      if (displaced === undefined || count(counts, socket) > count(counts, displaced)) displaced = socket;
    }
    return displaced;
  }
}

function count(counts: ReadonlyMap<string | undefined, number>, { remoteAddress }: ReservedSocket): number {
  return counts.get(remoteAddress) ?? 0;
}
