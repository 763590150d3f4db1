import { holders } from '../../backend/standing.ts';
import type { Entry } from '../../backend/lease-backend.ts';
import type { Deed, History, Life, Look } from './history.ts';

/** What in a history no store that keeps the contract can have answered; empty when there is nothing. */
export function checkHistory(history: History): readonly string[] {
  const looks = history.looks.toSorted((one, other) => one.sentMs - other.sentMs);
  const names = new Set(looks.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const own = looks.filter((look) => look.name === name);
    const lives = history.lives.filter(({ claim }) => claim.name === name);
    return [
      ...own.flatMap(checkLook),
      ...checkTickets(lives),
      ...checkPairs(own),
      ...lives.flatMap((life) => [...checkPresence(life, own), ...checkEnd(life, own)]),
    ];
  });
}

/** One line by itself: in the order of tickets, nothing twice, and never two that exclude each other. */
function checkLook({ entries }: Look): string[] {
  const found: string[] = [];
  const words = entries.map(wordsOf).join(', ');
  for (const [at, { ticket }] of entries.entries()) {
    if (at > 0 && ticket <= (entries[at - 1]?.ticket ?? 0n)) found.push(`not in the order of tickets: ${words}`);
  }
  if (new Set(entries.map(({ id }) => id)).size < entries.length) found.push(`one claim was entered twice: ${words}`);
  const holding = holders(entries).filter(({ mode }) => mode === 'exclusive');
  if (holding.length > 1) found.push(`two hold: ${words}`);
  return found;
}

/** One that was entered after another had been has the greater ticket, and no two have the same. */
function checkTickets(lives: readonly Life[]): string[] {
  const entered = lives.flatMap((life) => (life.ticket === undefined ? [] : [{ ...life, ticket: life.ticket }]));
  return entered.flatMap((one) =>
    entered
      .filter((other) => other !== one && one.answeredMs < other.sentMs && other.ticket <= one.ticket)
      .map((other) => `ticket ${other.ticket} was given after ${one.ticket}`),
  );
}

/** Of two looks one after the other: what the later one shows anew is younger than all that the earlier one showed. */
function checkPairs(looks: readonly Look[]): string[] {
  return looks.flatMap((earlier, at) => {
    const shown = new Set(earlier.entries.map(({ ticket }) => ticket));
    const last = earlier.entries.at(-1)?.ticket ?? 0n;
    return looks
      .slice(at + 1)
      .filter((later) => later.sentMs > earlier.answeredMs)
      .flatMap((later) => later.entries.filter(({ ticket }) => ticket < last && !shown.has(ticket)))
      .map((entry) => `${wordsOf(entry)} appeared after ticket ${last} had been seen without it`);
  });
}

/** While it surely lives every look shows it, with its data, and every deed to it is done. */
function checkPresence(life: Life, looks: readonly Look[]): string[] {
  const { ticket, claim } = life;
  if (ticket === undefined) {
    const isRefused = life.answeredMs < Infinity;
    return isRefused && looks.some((look) => shows(look, life)) ? [`${claim.id} was not entered and is shown`] : [];
  }
  const leftMs = Math.min(...life.deeds.filter(({ kind }) => kind === 'leave').map(({ sentMs }) => sentMs));
  const found: string[] = [];
  for (const look of looks.filter(({ sentMs }) => sentMs >= life.answeredMs)) {
    const entry = look.entries.find(({ id }) => id === claim.id);
    if (entry !== undefined && entry.ticket !== ticket) found.push(`${claim.id} has another ticket than it was given`);
    const isSure = look.answeredMs < Math.min(leftMs, sureUntilMs(life, look.sentMs));
    if (isSure && entry === undefined) found.push(`${claim.id} with ticket ${ticket} lives and is not shown`);
    if (entry !== undefined && !dataPossible(life, look).has(entry.data)) {
      found.push(`${claim.id} is shown with the data ${JSON.stringify(entry.data)}`);
    }
  }
  for (const deed of life.deeds.filter(({ sentMs }) => sentMs >= life.answeredMs)) {
    const isFirstToLeave = deed.kind !== 'leave' || isOnlyLeaving(life, deed);
    const endMs = deed.kind === 'leave' ? Infinity : leftMs;
    const isSure = deed.answeredMs < Math.min(endMs, sureUntilMs(life, deed.sentMs)) && isFirstToLeave;
    if (isSure && deed.isDone === false) found.push(`${deed.kind} of ${claim.id} was refused while it lived`);
  }
  return found;
}

/** Once one look or answer told that it is gone, nothing shows it and nothing is done to it any more. */
function checkEnd(life: Life, looks: readonly Look[]): string[] {
  const { claim } = life;
  const knownMs = Math.min(life.ticket === undefined ? Infinity : life.answeredMs, firstShownMs(life, looks));
  const goneMs = Math.min(
    ...looks.filter((look) => look.sentMs > knownMs && !shows(look, life)).map(({ answeredMs }) => answeredMs),
    ...life.deeds.filter((deed) => deed.sentMs > knownMs && tellsOfTheEnd(deed)).map(({ answeredMs }) => answeredMs),
  );
  const revived = looks.filter((look) => look.sentMs > goneMs && shows(look, life));
  const done = life.deeds.filter(({ sentMs, isDone }) => sentMs > goneMs && isDone === true);
  return [
    ...revived.map(() => `${claim.id} was gone and is shown again`),
    ...done.map(({ kind }) => `${claim.id} was gone and ${kind} was done to it`),
  ];
}

function tellsOfTheEnd({ kind, isDone }: Deed): boolean {
  return isDone === false || (kind === 'leave' && isDone === true);
}

function firstShownMs(life: Life, looks: readonly Look[]): number {
  return Math.min(...looks.filter((look) => shows(look, life)).map(({ answeredMs }) => answeredMs));
}

function shows({ entries }: Look, { claim }: Life): boolean {
  return entries.some(({ id }) => id === claim.id);
}

function isOnlyLeaving(life: Life, deed: Deed): boolean {
  return life.deeds.every((other) => other === deed || other.kind !== 'leave' || other.sentMs > deed.answeredMs);
}

/**
 * Until when it lives at least, for one who asks at `atMs`. A renewal that was on its way then may have come first and
 * shortened its life, so the shortest of all that may be the last counts.
 */
function sureUntilMs(life: Life, atMs: number): number {
  const renewals = life.deeds.filter(({ kind, isDone }) => kind === 'renew' && isDone !== false);
  const lastDoneMs = Math.max(
    life.sentMs,
    ...renewals.filter(({ answeredMs }) => answeredMs <= atMs).map(({ sentMs }) => sentMs),
  );
  const given = [{ sentMs: life.sentMs, answeredMs: life.answeredMs, ttlMs: life.claim.ttlMs }, ...renewals];
  // One that was answered before the last one was sent cannot be the last.
  const last = given.filter(({ answeredMs }) => answeredMs >= lastDoneMs);
  return Math.min(...last.map(({ sentMs, ttlMs }) => sentMs + ttlMs));
}

function dataPossible(life: Life, look: Look): ReadonlySet<string> {
  const updates = life.deeds.filter(({ kind, isDone, sentMs }) => {
    return kind === 'update' && isDone !== false && sentMs < look.answeredMs;
  });
  const beforeMs = Math.max(
    -Infinity,
    ...updates.filter(({ answeredMs }) => answeredMs < look.sentMs).map(({ sentMs }) => sentMs),
  );
  const possible = updates.filter(({ answeredMs }) => answeredMs >= beforeMs).map(({ data }) => data);
  return new Set(beforeMs === -Infinity ? [life.claim.data, ...possible] : possible);
}

function wordsOf({ id, ticket, mode }: Entry): string {
  return `${id} (${mode}, ticket ${ticket})`;
}
