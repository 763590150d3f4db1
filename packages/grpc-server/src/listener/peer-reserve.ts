import type { Socket } from 'node:net';

/** The interface of a socket that the reserve uses. */
export type ReservedSocket = Pick<Socket, 'remoteAddress' | 'destroy'>;

/**
 * Connections reserved for servers when clients use all others. Every new connection gets a place, since its peer is
 * unknown at first; until it is identified as a server the next connection may displace it. The oldest unidentified
 * connection of the address that holds most places is displaced, so that many connections from one address displace
 * only each other.
 */
export class PeerReserve {
  readonly #maxSockets: number;
  /** In order of arrival. */
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

  /** Whether the socket has a place here and may only be used to connect a server. */
  isUnproved(socket: ReservedSocket): boolean {
    return this.#unproved.has(socket);
  }

  /** The peer is a server. No effect for a socket without a place here. */
  prove(socket: ReservedSocket): void {
    if (this.#unproved.delete(socket)) this.#proved.add(socket);
  }

  giveBack(socket: ReservedSocket): void {
    this.#unproved.delete(socket);
    this.#proved.delete(socket);
  }

  /**
   * The new connection counts for its address, so that it displaces one of its own where that address would have most.
   */
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
