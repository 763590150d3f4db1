import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { healthpb } from '@tenure/protocol';
import { framed, http2Call } from '../client/http2-call.ts';
import { Code, refusalOf } from '../client/refusal.ts';
import { serviceCalls } from '../client/service-calls.ts';
import type { CaseContext } from './case-context.ts';
import type { CaseGroup } from './case.ts';

const { HealthCheckResponse_ServingStatus: Serving } = healthpb;

function healthReply(status: healthpb.HealthCheckResponse_ServingStatus): Buffer {
  return framed(toBinary(healthpb.HealthCheckResponseSchema, create(healthpb.HealthCheckResponseSchema, { status })));
}

/** The messages sent to a watcher until its timeout. */
async function firstHealth(t: CaseContext, service: string): Promise<Buffer> {
  const request = create(healthpb.HealthCheckRequestSchema, { service });
  const { body } = await http2Call(t.server.address, '/grpc.health.v1.Health/Watch', {
    headers: { 'grpc-timeout': '300m' },
    body: framed(toBinary(healthpb.HealthCheckRequestSchema, request)),
    halfClose: true,
  });
  return body;
}

export const cluster: CaseGroup = {
  name: 'Cluster and health',
  cases: [
    {
      name: 'lists the one member by the id in each header',
      run: async (t) => {
        for (const linearizable of [false, true]) {
          const { header, members } = await t.cluster.memberList({ linearizable });
          expect(members).toHaveLength(1);
          expect(members[0]).toMatchObject({
            ID: header?.memberId,
            name: t.server.name,
            clientURLs: [t.server.advertisedClientUrl],
            isLearner: false,
          });
        }
      },
    },
    {
      name: 'says that it serves, to a health check',
      run: async (t) => {
        const { check } = serviceCalls(t.client, { method: { check: healthpb.Health.method.check } });
        expect(await check({})).toMatchObject({ status: Serving.SERVING });
      },
    },
    {
      name: 'knows no health of a service that it does not name',
      run: async (t) => {
        const { check } = serviceCalls(t.client, { method: { check: healthpb.Health.method.check } });
        for (const service of ['no.such.Service', 'etcdserverpb.KV', 'etcdserverpb.Lease', 'grpc.health.v1.Health']) {
          expect(await refusalOf(check({ service }))).toEqual({ code: Code.notFound, details: 'unknown service' });
        }
      },
    },
    {
      name: 'sends SERVING at once to a health watch',
      run: async (t) => {
        expect(await firstHealth(t, '')).toEqual(healthReply(Serving.SERVING));
      },
    },
    {
      name: 'sends SERVICE_UNKNOWN to a health watch of an unknown service',
      run: async (t) => {
        for (const service of ['no.such.Service', 'etcdserverpb.KV']) {
          expect(await firstHealth(t, service)).toEqual(healthReply(Serving.SERVICE_UNKNOWN));
        }
      },
    },
  ],
};
