import { lineAt } from './repository.ts';
import type { TextFile, Violation } from './repository.ts';

interface RetiredWords {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Names that were inventions, each with the term of the field that replaced it; and words that slow a reader down. */
const retiredWords: readonly RetiredWords[] = [
  {
    pattern: /\b(nobody|somebody|anybody|everybody|whoever|whom|whosoever)\b/i,
    instead: 'name the thing: the client, the follower, the caller, no server',
  },
  {
    pattern:
      /\b(for ever(?!y)|upon|lest|heeds?|heeded|in vain|anew|dear|shall|whereupon|thereby|hence|thus|inquest)\b/i,
    instead: 'say it in plain present-day words',
  },
  { pattern: /\b(LineSeeker|LineSpot|line-seeker)\b/, instead: 'Acquisition, QueueTarget' },
  { pattern: /\b(LinePlace|line-place|PlaceObserver)\b/, instead: 'OwnEntry' },
  { pattern: /\b(LineViews?|line-views|LineWatch(es)?|line-watches)\b/, instead: 'SharedQueueReads, QueueWatch' },
  { pattern: /\b[Ll]ookouts?\b/, instead: 'QueueWatcher' },
  { pattern: /\b[Dd]epartures\b/, instead: 'EntryRemovals' },
  { pattern: /\b(Standpoint|Standing|standing\()/, instead: 'queuePosition' },
  { pattern: /\b(LeaseKeeper|lease-keeper)\b/, instead: 'Lessor on the server, LeaseRegistry in the library' },
  { pattern: /\b(Lease|Forwarding)Desk\b|\b(lease|forwarding)-desk\b/, instead: 'RenewalHandler, RenewalForwarder' },
  { pattern: /\bClusterReach\b|\bcluster-reach\b/, instead: 'Reachability' },
  { pattern: /\bFrontDoor\b|\bfront-door\b/, instead: 'ApiServer' },
  { pattern: /\bTailBell\b|\btail-bell\b/, instead: 'AppendNotifier' },
  { pattern: /\bbreathe\b/, instead: 'yieldToEventLoop' },
  { pattern: /\bOutbox\b/, instead: 'SendQueue' },
  { pattern: /\b([Ss]crub(s|ber|bed|bing)?|isScrubbed)\b/, instead: 'garbage collection, GarbageCollector' },
  { pattern: /\bright(Ms|To(Lead|Act))\b|\bright to lead\b/, instead: 'leader lease, leaderLeaseMs' },
  { pattern: /\b(live or dated|dated lease|dating|DueDate|undated)\b/, instead: 'checkpointed lease' },
  { pattern: /\bstraight-line\b|\/straight\//, instead: 'hand-written codec' },
];

const texts = /\.(ts|mjs|js|json|md|proto)$/;

/**
 * Refuses what issue 11 retired, in code and documents. The history of changes keeps the words of its time, and this
 * rule and its test must spell them.
 */
export function checkRetiredWords(file: TextFile): Violation[] {
  const { path, text } = file;
  const isExempt = path === 'CHANGELOG.md' || path.startsWith('tests/tidy/retired-words') || path.endsWith('.gen.ts');
  if (isExempt || !texts.test(path) || path.endsWith('package-lock.json')) return [];
  return retiredWords.flatMap(({ pattern, instead }) =>
    [...text.matchAll(new RegExp(pattern, `g${pattern.flags}`))].map((match) => ({
      path,
      line: lineAt(text, match.index),
      rule: 'retired words',
      message: `"${match[0]}": ${instead}`,
    })),
  );
}
