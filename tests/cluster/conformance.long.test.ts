import { afterAll, beforeAll, describe, inject } from 'vitest';
import {
  advertisedClientUrl,
  memberName,
  type RunningServer,
  type ServerOptions,
} from '../../conformance/servers/server-options.ts';
import { optionFlags } from '../../conformance/servers/tenure-server.ts';
import { describeConformance } from '../../conformance/suite.ts';
import { ClusterMember, type MemberOptions } from './cluster-member.ts';
import { testedEngines, type TestedEngine } from './tested-engine.ts';

/** The version of etcd's API that Tenure reports, in Status and at /version. */
const apiVersion = '3.6.0';

const oneServer = 'it tests a cluster of one server';
const throughFollower: readonly (readonly [string, string])[] = [
  [
    'renews many leases on one stream, answered in the order of the requests',
    'what one lease waits for holds up no other, so only the answers about one lease are in order',
  ],
  ['answers Status: one member that leads and does not lag', oneServer],
  ['lists the one member by the id in each header', oneServer],
  ['does not remove the only member', oneServer],
  ['promotes no member that is no learner', oneServer],
  ['adds no member by a call, nor another URL to one', oneServer],
  ['does not transfer the leadership to an unknown member, and keeps the leader', oneServer],
];

const oneServerAlone = { role: 'one server', exceptions: [] } as const;
/** The suite runs against this server and the leader started before it, so that every call goes through both. */
const follower = { role: 'a follower', exceptions: throughFollower } as const;
const roles = inject('effort') === 'soak' ? [oneServerAlone, follower] : [follower];

describe.for(testedEngines)('on $kind', ({ isThere, start: startEngine }) => {
  if (!isThere) return;
  let engine: TestedEngine | undefined;
  let logs = 0;

  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine?.dispose());

  describe.for(roles)('through $role:', ({ role, exceptions }) => {
    /** On a log of its own. */
    const start = async (options: ServerOptions = {}): Promise<RunningServer> => {
      if (engine === undefined) throw new Error('the engine did not start');
      logs += 1;
      const log = engine.logNamed(`cluster_${logs}`);
      const common: MemberOptions = { name: 'leader', ...log, flags: [...log.flags, ...optionFlags(options)] };
      const leader = role === 'a follower' ? [await ClusterMember.start(common)] : [];
      const flags = [...(common.flags ?? []), '--advertise-client-urls', advertisedClientUrl];
      const asked = await ClusterMember.start({ ...common, name: memberName, flags });
      const servers = [...leader, asked];
      if ((await asked.leadership()).leads !== (role === 'one server')) throw new Error(`it is not ${role}`);
      return {
        kind: 'tenure',
        address: asked.address,
        name: memberName,
        advertisedClientUrl,
        pid: asked.process.pid,
        stop: async () => {
          await Promise.all(servers.map((server) => server.stop('SIGKILL')));
        },
      };
    };

    describeConformance({ kind: 'tenure', apiVersion, exceptions: new Map(exceptions), servers: 2, start });
  });
});
