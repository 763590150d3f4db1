export type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  EntryMode,
  LeaseBackend,
  QueueWatch,
  Renewal,
} from './backend/lease-backend.ts';
export { holders, queuePosition } from './backend/queue-position.ts';
export type { QueuePosition, QueueCandidate } from './backend/queue-position.ts';
export type { CampaignOptions, Election, ElectionOptions, Leader, RunOptions } from './election/election.ts';
export type { Leadership } from './election/leadership.ts';
export type { LeaseEvent, LeaseEventMessage } from './diagnostics/lease-channel.ts';
export { AcquireTimeoutError } from './errors/acquire-timeout-error.ts';
export { BackendError } from './errors/backend-error.ts';
export type { BackendErrorCode } from './errors/backend-error.ts';
export { ClosedError } from './errors/closed-error.ts';
export { LeaseHeldError } from './errors/lease-held-error.ts';
export { LeaseLostError } from './errors/lease-lost-error.ts';
export type { LossReason } from './errors/lease-lost-error.ts';
export { NoMembersError } from './errors/no-members-error.ts';
export { TenureError } from './errors/tenure-error.ts';
export type { TenureErrorCode } from './errors/tenure-error.ts';
export { UsageError } from './errors/usage-error.ts';
export { createLeaseManager } from './lease-manager.ts';
export { loadBalanced } from './load-balanced.ts';
export type { LeaseManager, LeaseManagerOptions } from './lease-manager.ts';
export type { AcquireOptions, WaitMode } from './leases/acquire-options.ts';
export type { Hold, ReleaseOptions } from './leases/hold.ts';
export type { LeaseHandle } from './leases/lease-handle.ts';
export type { LeaseInfo } from './leases/lease-info.ts';
export type { ReleaseSignal } from './leases/release-signals.ts';
export type { LeaseListener } from './leases/lease-listener.ts';
export type { WatchOptions } from './leases/lease-watch.ts';
export type { ReadWriteLock } from './locks/read-write-lock.ts';
export type { Semaphore } from './locks/semaphore.ts';
export type { Member, MemberMetadata } from './membership/member.ts';
export type { Membership, MembershipOptions } from './membership/membership.ts';
export { rendezvousOwner } from './membership/rendezvous.ts';
export type { Weighted } from './membership/rendezvous.ts';
export type { Changes, Snapshot } from './membership/snapshot.ts';
export type { Clock, Moment, Timer } from './time/clock.ts';
export type { Signal } from './time/signal.ts';
export { systemClock } from './time/system-clock.ts';
