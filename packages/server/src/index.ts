export { type ConfigOutcome, type ConfigSource, parseServerConfig } from './config/parse-server-config.ts';
export type { ServerConfig } from './config/server-config.ts';
export { verifyLog } from './engines/file/log-inspection.ts';
export { truncateLog } from './engines/file/log-truncation.ts';
export { describeLog } from './operator/log-dump.ts';
export { restoreSnapshot } from './operator/snapshot-restore.ts';
export { snapshotOfLog } from './operator/snapshot-save.ts';
export { snapshotStatus } from './operator/snapshot-status.ts';
export { type RunningServer, serve, type ServeIo } from './server.ts';
