import { TenureError } from './tenure-error.ts';

/** No member of the group can own a resource, because none has a weight. */
export class NoMembersError extends TenureError {
  static override readonly kind = 'NoMembersError';
  readonly group: string;

  constructor(group: string) {
    super('no-members', `the group ${JSON.stringify(group)} has no member that could own anything`);
    this.group = group;
  }
}
