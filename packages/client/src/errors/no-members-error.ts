import { TenureError } from './tenure-error.ts';

/** A resource was to be given to a member, and there is none that takes any. */
export class NoMembersError extends TenureError {
  static override readonly kind = 'NoMembersError';
  readonly group: string;

  constructor(group: string) {
    super('no-members', `the group ${JSON.stringify(group)} has no member that could own anything`);
    this.group = group;
  }
}
