/**
 * A field that etcd's messages do not have. Unknown fields are skipped by etcd's clients, so that a reply may carry it
 * always.
 */
export interface ExtensionField {
  /** Message in the package `etcdserverpb`. */
  readonly message: string;
  readonly field: string;
  readonly number: number;
  readonly meaning: string;
}

/** The lowest number of a field of ours: etcd's own will hardly get there. */
export const firstExtensionNumber = 1001;

/**
 * The trailer in which Tenure says more of a refusal than etcd's text leaves room for. Short, and from a closed set of
 * words.
 */
export const reasonTrailer = 'tenure-reason';

/**
 * All of Tenure's extension fields. A number belongs to one name and one meaning for ever; a test holds this table
 * equal to the .proto files.
 */
export const extensionFields: readonly ExtensionField[] = [
  {
    message: 'LeaseGrantRequest',
    field: 'TTL_ms',
    number: 1001,
    meaning: 'The TTL asked for, in milliseconds. Wins over TTL when it is not 0.',
  },
  {
    message: 'LeaseGrantRequest',
    field: 'label',
    number: 1003,
    meaning: 'Says for whom the lease is; shown by listings, never interpreted.',
  },
  {
    message: 'LeaseGrantResponse',
    field: 'TTL_ms',
    number: 1001,
    meaning: 'The TTL granted, in milliseconds. TTL is the same rounded up to seconds.',
  },
  {
    message: 'LeaseGrantResponse',
    field: 'ttl_raised',
    number: 1004,
    meaning: 'The TTL asked for was below the minimum and was raised to it.',
  },
  {
    message: 'LeaseKeepAliveResponse',
    field: 'TTL_ms',
    number: 1001,
    meaning: 'The TTL that runs from now on, in milliseconds; 0 when the lease is gone.',
  },
  {
    message: 'LeaseTimeToLiveResponse',
    field: 'TTL_ms',
    number: 1001,
    meaning: 'What remains of the TTL, in milliseconds; -1 when the lease is unknown. TTL is cut off to seconds.',
  },
  {
    message: 'LeaseTimeToLiveResponse',
    field: 'grantedTTL_ms',
    number: 1002,
    meaning: 'The TTL with which the lease was granted, in milliseconds.',
  },
  { message: 'LeaseTimeToLiveResponse', field: 'label', number: 1003, meaning: 'The label given at the grant.' },
  {
    message: 'LeaseLeasesRequest',
    field: 'details',
    number: 1007,
    meaning: 'Asks for the fields of LeaseStatus below, which would make the list three times as long.',
  },
  { message: 'LeaseStatus', field: 'TTL_ms', number: 1001, meaning: 'What remains of the TTL, in milliseconds.' },
  {
    message: 'LeaseStatus',
    field: 'grantedTTL_ms',
    number: 1002,
    meaning: 'The TTL with which the lease was granted, in milliseconds.',
  },
  { message: 'LeaseStatus', field: 'label', number: 1003, meaning: 'The label given at the grant.' },
  {
    message: 'StatusResponse',
    field: 'tenure_version',
    number: 1005,
    meaning: "Tenure's own version; `version` names the etcd API that is spoken.",
  },
  {
    message: 'Member',
    field: 'unreachable',
    number: 1006,
    meaning:
      'The leader has heard nothing from this member for some seconds, or the server that answers has no leader.',
  },
];
