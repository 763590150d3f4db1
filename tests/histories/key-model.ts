import type { KeyVersion, KvInput, KvOperation, KvOutput } from './kv-operation.ts';
import type { SequentialModel } from './linearizability.ts';
import type { Operation } from './operation.ts';

/** The effect of a call on one key. */
export type KeyInput =
  | { readonly kind: 'get' }
  | { readonly kind: 'put'; readonly value: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'swap'; readonly expected: string | undefined; readonly value: string };

export interface KeyOutput {
  readonly changed: boolean;
  /** For a get the current value, else the previous one; null: no such key; undefined: not in the reply. */
  readonly seen: string | null | undefined;
}

const absent = '-';
const holding = (value: string): string => `=${value}`;

/** One key, without reliance on any revision that the server reports. */
export const keyModel: SequentialModel<KeyInput, KeyOutput> = {
  initial: absent,
  step(state, input, output) {
    if (output?.seen !== undefined && (output.seen === null ? absent : holding(output.seen)) !== state)
      return undefined;
    const next = nextState(state, input);
    if (output === undefined || input.kind === 'get' || input.kind === 'put') return next;
    const changes = input.kind === 'delete' ? state !== absent : state === expectedState(input);
    return output.changed === changes ? next : undefined;
  },
};

function nextState(state: string, input: KeyInput): string {
  if (input.kind === 'get') return state;
  if (input.kind === 'delete') return absent;
  if (input.kind === 'put') return holding(input.value);
  return state === expectedState(input) ? holding(input.value) : state;
}

function expectedState({ expected }: { readonly expected: string | undefined }): string {
  return expected === undefined ? absent : holding(expected);
}

/**
 * The calls that concern each key, as calls on that key alone. A history is linearizable if and only if the history of
 * each object is. This splits a call on several keys into its effects on each; the check of revisions covers the rest.
 */
export function operationsByKey(operations: readonly KvOperation[]): Map<string, Operation<KeyInput, KeyOutput>[]> {
  const found = new Map<string, Operation<KeyInput, KeyOutput>[]>();
  for (const operation of operations) {
    for (const [key, input] of inputsByKey(operation.input)) {
      const { outcome } = operation;
      const forKey = {
        ...operation,
        input,
        outcome: outcome.kind === 'known' ? outputOf(outcome.output, key) : outcome,
      };
      const list = found.get(key);
      if (list === undefined) found.set(key, [forKey]);
      else list.push(forKey);
    }
  }
  return found;
}

function inputsByKey(input: KvInput): [string, KeyInput][] {
  if (input.kind === 'get') return input.keys.map((key) => [key, { kind: 'get' }]);
  if (input.kind === 'put') return input.writes.map(([key, value]) => [key, { kind: 'put', value }]);
  if (input.kind === 'delete') return [[input.key, { kind: 'delete' }]];
  return [[input.key, { kind: 'swap', expected: input.expected, value: input.value }]];
}

function outputOf({ changed, seen }: KvOutput, key: string): { kind: 'known'; output: KeyOutput } {
  const version: KeyVersion | null | undefined = seen.get(key);
  return { kind: 'known', output: { changed, seen: version === null ? null : version?.value } };
}
