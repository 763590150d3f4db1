/** A field that etcd's messages do not have. etcd's clients skip unknown fields, so a reply may always contain it. */
export interface ExtensionField {
  /** Message in the package `etcdserverpb`. */
  readonly message: string;
  readonly field: string;
  readonly number: number;
  readonly meaning: string;
}

/** The lowest number of Tenure's fields, far above etcd's own. */
export const firstExtensionNumber = 1001;

/** The trailer with more detail about a refusal than etcd's text allows. Short, and from a fixed set of values. */
export const reasonTrailer = 'tenure-reason';

/**
 * All of Tenure's extension fields. A number never changes its name and meaning; a test compares this table with the
 * .proto files.
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
    meaning: 'The owner of the lease; shown in listings, never interpreted.',
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
    meaning: 'The remaining TTL, in milliseconds; -1 when the lease is unknown. TTL is rounded down to seconds.',
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
  { message: 'LeaseStatus', field: 'TTL_ms', number: 1001, meaning: 'The remaining TTL, in milliseconds.' },
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
