import { expect } from 'vitest';
import { v3electionpb, v3lockpb } from '@tenure/protocol';
import { Code } from '../client/refusal.ts';
import type { Case, CaseGroup } from './case.ts';

const methods = [...Object.values(v3lockpb.Lock.method), ...Object.values(v3electionpb.Election.method)];

export const unimplemented: CaseGroup = {
  name: 'unimplemented methods',
  cases: methods.map(({ name, parent }): Case => ({
    name: `${parent.typeName}/${name} says so`,
    tenureOnly: 'etcd has it',
    run: async (t) => {
      const path = `/${parent.typeName}/${name}`;
      const outcome = await t.client.unaryRaw(path, new Uint8Array());
      expect(outcome).toMatchObject({ ok: false, code: Code.unimplemented });
      const details = outcome.ok ? '' : outcome.details;
      expect(details).not.toMatch(/^unknown (method|service)/);
      expect(details.length).toBeGreaterThan(10);
    },
  })),
};
