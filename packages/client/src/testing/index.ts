export { backendConformance } from './backend-conformance.ts';
export type { ConformanceOptions, TestFramework } from './backend-conformance.ts';
export type { ConformanceStore, Hint, StoreHook } from './conformance/conformance-store.ts';
export { FakeClock } from './fake-clock.ts';
export { FakeLeaseManager } from './fake-lease-manager.ts';
export type { FakeLeaseManagerOptions } from './fake-lease-manager.ts';
export { FakeMembership } from './fake-membership.ts';
