export { ChildProgram, endWithUs } from './child-program.ts';
export type { Command, ProgramEnd } from './child-program.ts';
export { NodeClock } from './clocks/node-clock.ts';
export { Schedule } from './clocks/schedule.ts';
export { VirtualClock } from './clocks/virtual-clock.ts';
export { CuttingProxy } from './cutting-proxy.ts';
export { startDynalite } from './dynalite-server.ts';
export { startEtcdCluster } from './etcd/etcd-cluster.ts';
export { EtcdProcess, etcdProgram, hasEtcd } from './etcd/etcd-process.ts';
export { freePort, freePorts } from './free-ports.ts';
export { testConnection } from './grpc/test-connection.ts';
export { deferred, echo, startTestServer, type TestServer } from './grpc/test-server.ts';
export { UnreadClient } from './grpc/unread-client.ts';
export { FrameClient, type ReceivedFrame } from './http2/frame-client.ts';
export { playHostileInputs } from './http2/hostile-client.ts';
export { hostileKinds } from './http2/hostile-input.ts';
export type { HostileMethod, HostileTarget } from './http2/hostile-input.ts';
export {
  endHeaders,
  endStream,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  http2Preface,
  settingsFrame,
} from './http2/http2-frames.ts';
export { callFrames, dataFrame, openFrame, repeat, windowUpdate } from './http2/call-frames.ts';
export { LongestTurn } from './grpc/longest-turn.ts';
export { frameMessage, RawClient } from './http2/raw-call.ts';
export type { RawReply } from './http2/raw-call.ts';
export { hasMariadb, hasPgbouncer, isInstalled } from './installed-programs.ts';
export { makeCertificates } from './make-certificates.ts';
export { TestAuthority, type CertificateRequest, type TestCertificate } from './test-authority.ts';
export { MariadbServer } from './mariadb-server.ts';
export { hasPatroni, PatroniNode, type PatroniState, patroniLeaderKey } from './patroni-node.ts';
export { PgBouncer } from './pg-bouncer.ts';
export type { PoolMode } from './pg-bouncer.ts';
export { PostgresCluster } from './postgres/postgres-cluster.ts';
export { initializeTestData, testDatabasesVariable } from './postgres/postgres-data.ts';
export { PostgresDatabase } from './postgres/postgres-database.ts';
export { lastIndex, PostgresPair } from './postgres/postgres-pair.ts';
export { hasPostgres, postgresUser, postgresVersion } from './postgres/postgres-programs.ts';
export { SeededRandom } from './seeded-random.ts';
export { ServeProcess } from './serve-process.ts';
export { withTemporaryFolder } from './temporary-folder.ts';
export { builtCommand, testedCommand, testedCommandVariable } from './tested-command.ts';
