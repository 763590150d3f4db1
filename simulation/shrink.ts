/** Says whether a scenario still violates the rule. */
export type Judge<T> = (scenario: T) => Promise<boolean>;

export interface Shrunk<T> {
  readonly scenario: T;
  readonly attempts: number;
}

/**
 * The simplest value of each number of a scenario, tried first. Other numbers are never changed, and every list of
 * objects is shortened whatever its name.
 */
const simplest: Readonly<Record<string, number>> = {
  servers: 1,
  processes: 1,
  callers: 1,
  holders: 0,
  keyClients: 0,
  watchClients: 0,
  compactChance: 0,
  largeBytes: 0,
  windowBytes: 65_536,
  maxPendingCommands: 65_536,
  faultsMs: 200,
  engineTrouble: 0,
  lateShare: 0,
  snapshotCount: 10_000,
  clients: 1,
  loadMs: 200,
  failedReads: 0,
  failedWrites: 0,
  failedSyncs: 0,
  shortWrites: 0,
  slowOperations: 0,
  preallocateBytes: 0,
};
/** How often the distance to the simplest value is halved. */
const halvings = 4;
/** Digits after the point of the numbers of a shortened scenario. */
const digits = 2;

/** Reduces a scenario while the judge holds it for failing, until nothing more can go or the attempts are used up. */
export async function shrink<T extends object>(scenario: T, judge: Judge<T>, maxAttempts: number): Promise<Shrunk<T>> {
  const search = new Search(scenario, judge, maxAttempts);
  for (;;) {
    const before = search.best;
    for (const [name, value] of Object.entries(search.best)) {
      if (isListOfObjects(value)) await search.shortenList(name, value);
    }
    for (const [name, least] of Object.entries(simplest)) await search.simplify(name, least);
    if (search.best === before || search.isExhausted) break;
  }
  await search.round();
  return { scenario: search.best, attempts: search.attempts };
}

class Search<T extends object> {
  best: T;
  attempts = 0;
  readonly #judge: Judge<T>;
  readonly #maxAttempts: number;

  constructor(scenario: T, judge: Judge<T>, maxAttempts: number) {
    this.best = scenario;
    this.#judge = judge;
    this.#maxAttempts = maxAttempts;
  }

  get isExhausted(): boolean {
    return this.attempts >= this.#maxAttempts;
  }

  /** Removes runs of elements, shorter and shorter ones (ddmin). */
  async shortenList(name: string, elements: readonly object[]): Promise<void> {
    let kept = elements;
    for (let length = kept.length; length >= 1; length = Math.floor(length / 2)) {
      for (let at = 0; at < kept.length && !this.isExhausted;) {
        const fewer = [...kept.slice(0, at), ...kept.slice(at + length)];
        if (await this.#try({ [name]: fewer })) kept = fewer;
        else at += length;
      }
    }
  }

  /** The simplest value, or one on the way to it. */
  async simplify(name: string, least: number): Promise<void> {
    const value = this.#numberAt(name);
    if (value === undefined || value === least || (await this.#try({ [name]: least }))) return;
    let [fails, passes] = [value, least];
    for (let halving = 0; halving < halvings; halving += 1) {
      const middle = (fails + passes) / 2;
      const tried = Number.isInteger(value) ? Math.trunc(middle) : middle;
      if (tried === fails || tried === passes) return;
      if (await this.#try({ [name]: tried })) fails = tried;
      else passes = tried;
    }
  }

  /** A scenario of round numbers is read and copied more easily. */
  async round(): Promise<void> {
    const rounded = JSON.parse(JSON.stringify(this.best, (_name, value) => roundedNumber(value))) as T;
    await this.#try(rounded);
  }

  #numberAt(name: string): number | undefined {
    const value: unknown = Object.entries(this.best).find(([each]) => each === name)?.[1];
    return typeof value === 'number' ? value : undefined;
  }

  async #try(change: object): Promise<boolean> {
    if (this.isExhausted) return false;
    this.attempts += 1;
    const candidate = { ...this.best, ...change };
    const isFailing = await this.#judge(candidate);
    if (isFailing) this.best = candidate;
    return isFailing;
  }
}

function isListOfObjects(value: unknown): value is readonly object[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'object' && each !== null);
}

function roundedNumber(value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toFixed(digits)) : value;
}
