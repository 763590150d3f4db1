/** What is flushed at the end of a turn of the event loop. */
interface Flushed {
  flush(): void;
}

let due: Flushed[] = [];

/** Flushes it after everything that this turn of the event loop reads from sockets and disks. */
export function flushLater(flushed: Flushed): void {
  if (due.length === 0) setImmediate(flushAll);
  due.push(flushed);
}

function flushAll(): void {
  const all = due;
  due = [];
  for (const each of all) each.flush();
}
