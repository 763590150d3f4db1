/** The reason why a snapshot cannot be restored. */
export type SnapshotErrorCode =
  /** Bytes are missing, changed, or contradict each other. */
  | 'damaged'
  /** No damage was found, but this version does not know the format. */
  | 'unsupported';

export class SnapshotError extends Error {
  readonly code: SnapshotErrorCode;

  constructor(code: SnapshotErrorCode, message: string) {
    super(message);
    this.name = 'SnapshotError';
    this.code = code;
  }
}
