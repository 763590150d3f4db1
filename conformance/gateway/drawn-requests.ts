import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { firstExtensionNumber, rpcMethods } from '@tenure/protocol';
import fc from 'fast-check';
import type { GatewayRequest } from './exchange.ts';

/** Methods whose effects and replies are the same on two fresh servers that get the same calls. */
const repeatable: Readonly<Record<string, string>> = {
  '/v3/kv/range': 'KV/Range',
  '/v3/kv/put': 'KV/Put',
  '/v3/kv/deleterange': 'KV/DeleteRange',
  '/v3/kv/txn': 'KV/Txn',
  '/v3/lease/grant': 'Lease/LeaseGrant',
  '/v3/lease/revoke': 'Lease/LeaseRevoke',
  '/v3/auth/status': 'Auth/AuthStatus',
  '/v3/auth/user/get': 'Auth/UserGet',
  '/v3/auth/user/delete': 'Auth/UserDelete',
  '/v3/auth/user/list': 'Auth/UserList',
  '/v3/auth/user/grant': 'Auth/UserGrantRole',
  '/v3/auth/user/revoke': 'Auth/UserRevokeRole',
  '/v3/auth/role/add': 'Auth/RoleAdd',
  '/v3/auth/role/get': 'Auth/RoleGet',
  '/v3/auth/role/delete': 'Auth/RoleDelete',
  '/v3/auth/role/list': 'Auth/RoleList',
};

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** In every message: a lease lives longer than the run, and few ids are used so that some exist. */
const byName: Readonly<Record<string, fc.Arbitrary<Json>>> = {
  TTL: fc.constantFrom('5000', 9000),
  ID: fc.constantFrom('1', 2, '3e0', '0x1', 0),
};

/** Requests for these methods: most are messages, some with a value of a wrong type, some not JSON. */
export const drawnRequest: fc.Arbitrary<GatewayRequest> = fc
  .constantFrom(...Object.entries(repeatable))
  .chain(([path, name]) => {
    const method = rpcMethods.get(`/etcdserverpb.${name}`);
    if (method === undefined) throw new Error(`${name} is no method of etcd`);
    // An edited TTL may end within the run.
    const isEdited = path !== '/v3/lease/grant';
    return drawnBody(method.descriptor.input, isEdited).map((body) => ({ path, body }));
  });

function drawnBody(input: DescMessage, isEdited: boolean): fc.Arbitrary<string> {
  const text = fc
    .tuple(drawnJson(input, 3), fc.constantFrom(0, 0, 1))
    .map(([json, indent]) => JSON.stringify(json, null, indent));
  if (!isEdited) return text;
  const edit = fc.tuple(
    fc.nat(),
    fc.nat({ max: 2 }),
    fc.constantFrom('', ...'{}[]",:0e-.\n\t x\\u\u00e9', 'null', 'true'),
  );
  return fc
    .tuple(text, fc.option(fc.array(edit, { minLength: 1, maxLength: 2 }), { freq: 2 }))
    .map(([whole, edits]) => {
      let edited = whole;
      for (const [at, removed, added] of edits ?? []) {
        const from = at % (edited.length + 1);
        edited = edited.slice(0, from) + added + edited.slice(from + removed);
      }
      return edited;
    });
}

function drawnJson(message: DescMessage, depth: number): fc.Arbitrary<Json> {
  const fields = message.fields.filter(
    (field) => field.number < firstExtensionNumber && (depth > 0 || field.message === undefined),
  );
  const entries = fields.map((field) => {
    const name = fc.constantFrom(field.name, field.jsonName);
    const fixed = byName[field.name];
    if (fixed !== undefined) return fc.tuple(name, fixed);
    return fc.option(fc.tuple(name, drawnField(field, depth)), { nil: undefined, freq: 2 });
  });
  const unknown = fc.option(fc.tuple(fc.constantFrom('', 'unknown', 'Key'), fc.jsonValue({ maxDepth: 2 })), {
    nil: undefined,
    freq: 1,
  });
  return fc.tuple(fc.tuple(...entries), unknown).map(([known, extra]) => {
    const found = [...known, extra === undefined ? undefined : ([extra[0], extra[1] as Json] as const)];
    return Object.fromEntries(found.filter((each) => each !== undefined));
  });
}

function drawnField(field: DescField, depth: number): fc.Arbitrary<Json> {
  const value = drawnValue(field, depth);
  const wrong = fc.constantFrom<Json>(null, [], {}, 'x', '', true, 1.5, '1', 1e20, '-', [null], [[]]);
  const right = field.fieldKind === 'list' ? fc.array(value, { maxLength: 3 }) : value;
  return fc.oneof({ weight: 15, arbitrary: right }, { weight: 1, arbitrary: wrong });
}

function drawnValue(field: DescField, depth: number): fc.Arbitrary<Json> {
  if (field.message !== undefined) return drawnJson(field.message, depth - 1);
  if (field.enum !== undefined) {
    const { values } = field.enum;
    return fc.constantFrom<Json>(...values.map(({ name }) => name), ...values.map((each) => each.number), 'NONE_SUCH');
  }
  switch ('scalar' in field ? field.scalar : undefined) {
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.constantFrom('', 'YQ==', 'YQ', 'Yg==', 'Yw==', 'AA==', 'YWI', '-_8=');
    case ScalarType.STRING:
      return fc.constantFrom('', 'root', 'ada', 'r\u00e9');
    default:
      return fc.constantFrom<Json>(0, '0', 1, '1', 2, '-1', '1e0', 3.0);
  }
}
