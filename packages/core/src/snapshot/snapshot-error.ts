/** Why a snapshot cannot be restored. */
export type SnapshotErrorCode =
  /** Bytes are missing, changed, or contradict each other. */
  | 'damaged'
  /** It is whole as far as one can tell, but of a format that this version does not know. */
  | 'unsupported';

export class SnapshotError extends Error {
  readonly code: SnapshotErrorCode;

  constructor(code: SnapshotErrorCode, message: string) {
    super(message);
    this.name = 'SnapshotError';
    this.code = code;
  }
}
