import { TurnQueue } from './turn-queue.ts';

/** Queued items of several owners: in order for each owner, round-robin between owners. */
export class FairQueue<Owner, Item> {
  /** In the order of their turns; only owners with items. */
  readonly #owners = new Map<Owner, TurnQueue<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  waitingFor(owner: Owner): number {
    return this.#owners.get(owner)?.size ?? 0;
  }

  push(owner: Owner, item: Item): void {
    let items = this.#owners.get(owner);
    if (items === undefined) {
      items = new TurnQueue();
      this.#owners.set(owner, items);
    }
    this.#size -= items.size;
    items.push(item);
    this.#size += items.size;
  }

  /** The first owner in turn that may take an item now. It keeps its turn until it takes. */
  next(mayTake: (owner: Owner) => boolean = always): Owner | undefined {
    for (const owner of this.#owners.keys()) if (mayTake(owner)) return owner;
    return undefined;
  }

  /** The owner's first item, which stays queued. */
  peek(owner: Owner): Item | undefined {
    return this.#owners.get(owner)?.first;
  }

  /** The owner's last item, which stays queued. */
  peekLast(owner: Owner): Item | undefined {
    return this.#owners.get(owner)?.last;
  }

  /** The owner of the most items. */
  heaviest(): Owner | undefined {
    let found: Owner | undefined;
    let most = 0;
    for (const [owner, { size }] of this.#owners) {
      if (size <= most) continue;
      most = size;
      found = owner;
    }
    return found;
  }

  /** Removes the owner's first item. The owner's next turn comes after those of all others. */
  take(owner: Owner): Item | undefined {
    const items = this.#owners.get(owner);
    const item = items?.shift();
    if (items === undefined || item === undefined) return undefined;
    this.#size -= 1;
    this.#owners.delete(owner);
    if (items.size > 0) this.#owners.set(owner, items);
    return item;
  }

  /** Does nothing for an item that is not queued. */
  delete(owner: Owner, item: Item): void {
    const items = this.#owners.get(owner);
    if (items === undefined) return;
    this.#size -= items.size;
    items.delete(item);
    this.#size += items.size;
    if (items.size === 0) this.#owners.delete(owner);
  }
}

function always(): boolean {
  return true;
}
