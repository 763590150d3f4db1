/** One attempt may meet a collection of garbage, or code that is not compiled yet. */
const attempts = 5;

function processorMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * Milliseconds of the longest turn of the event loop during `work`, in the best of a few attempts. Time of the
 * processor: what the machine withholds does not count.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < attempts; i += 1) shortest = Math.min(shortest, await longestOf(work));
  return shortest;
}

async function longestOf(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let before = process.cpuUsage();
  const measure = (): void => {
    longest = Math.max(longest, processorMs(before));
    before = process.cpuUsage();
    if (!isOver) setImmediate(measure);
  };
  setImmediate(measure);
  try {
    await work();
  } finally {
    isOver = true;
    longest = Math.max(longest, processorMs(before));
  }
  return longest;
}
