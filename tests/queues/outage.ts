import { Code, type CallStatus } from '../../conformance/client/refusal.ts';

/** The server has ended, or has no leader: in Lock and Election such errors have etcd's text and no code. */
export function isOfOutage({ code, details }: CallStatus): boolean {
  if (code === Code.unavailable || code === Code.cancelled) return true;
  return code === Code.unknown && /timed out|leader changed|no leader|server stopped/.test(details);
}
