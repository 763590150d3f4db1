import type { StateMachine } from '@tenure/core';

/** The value of a key in the state; undefined if there is none. */
export function valueOf(state: StateMachine, key: string): string | undefined {
  const result = state.range({
    key,
    rangeEnd: '',
    limit: 0,
    revision: 0,
    sortOrder: 0,
    sortTarget: 0,
    serializable: true,
    keysOnly: false,
    countOnly: false,
    minModRevision: 0,
    maxModRevision: 0,
    minCreateRevision: 0,
    maxCreateRevision: 0,
  });
  return 'kvs' in result ? result.kvs[0]?.value : undefined;
}
