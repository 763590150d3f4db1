import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { healthpb } from '@tenure/protocol';
import { framed, http2Call } from '../client/http2-call.ts';
import { Code, refusalOf } from '../client/refusal.ts';
import { serviceCalls } from '../client/service-calls.ts';
import type { CaseGroup } from './case.ts';

const { HealthCheckResponse_ServingStatus: Serving } = healthpb;

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
        expect(await refusalOf(check({ service: 'no.such.Service' }))).toEqual({
          code: Code.notFound,
          details: 'unknown service',
        });
      },
    },
    {
      name: 'says at once that it serves, to who watches its health',
      run: async (t) => {
        const { body } = await http2Call(t.server.address, '/grpc.health.v1.Health/Watch', {
          headers: { 'grpc-timeout': '300m' },
          body: framed(new Uint8Array()),
          halfClose: true,
        });
        const reply = create(healthpb.HealthCheckResponseSchema, { status: Serving.SERVING });
        expect(body).toEqual(framed(toBinary(healthpb.HealthCheckResponseSchema, reply)));
      },
    },
  ],
};
