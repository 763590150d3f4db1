/**
 * The names in a data folder. The number in a segment's name is the index of its first entry, in a snapshot's the index
 * of its last entry. Names end in `.tmp` until the file is complete and on the disk.
 */
const digits = 16;

export function segmentName(firstIndex: number): string {
  return `log-${String(firstIndex).padStart(digits, '0')}.segment`;
}

export function snapshotName(index: number): string {
  return `snapshot-${String(index).padStart(digits, '0')}.snapshot`;
}

export function temporaryName(name: string): string {
  return `${name}.tmp`;
}

export interface FolderListing {
  /** Ascending by first index. */
  readonly segments: readonly { readonly name: string; readonly firstIndex: number }[];
  /** Ascending by index. */
  readonly snapshots: readonly { readonly name: string; readonly index: number }[];
  /** Incomplete files left by a crash. */
  readonly leftovers: readonly string[];
}

/** Sorts the names found in a folder. Unknown names are ignored: other parts of the server keep files there too. */
export function listNames(names: readonly string[]): FolderListing {
  const segments: { name: string; firstIndex: number }[] = [];
  const snapshots: { name: string; index: number }[] = [];
  const leftovers: string[] = [];
  for (const name of names.toSorted()) {
    const match = /^(log-(\d{16})\.segment|snapshot-(\d{16})\.snapshot)(\.tmp)?$/.exec(name);
    if (match === null) continue;
    if (match[4] !== undefined) leftovers.push(name);
    else if (match[2] !== undefined) segments.push({ name, firstIndex: Number(match[2]) });
    else snapshots.push({ name, index: Number(match[3]) });
  }
  return { segments, snapshots, leftovers };
}
