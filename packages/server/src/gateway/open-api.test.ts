import { Validator } from '@seriousme/openapi-schema-validator';
import { rpcMethods } from '@tenure/protocol';
import { expect, test } from 'vitest';
import { gatewayMethods } from './gateway-paths.ts';
import { openApiDocument } from './open-api.ts';

const document = openApiDocument('1.2.3');
const parsed = JSON.parse(JSON.stringify(document)) as {
  readonly paths: Readonly<Record<string, { readonly post: { readonly operationId: string } }>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties?: object }>> };
};

test('is valid OpenAPI, and none of its references is dead', async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document));
  expect(errors).toBe(undefined);
  expect([valid, validator.version]).toEqual([true, '3.0']);
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
  const names = new Set(Object.keys(parsed.components.schemas));
  expect(references.map(([, name = '']) => name).filter((name) => !names.has(name))).toEqual([]);
});

test('a document that is not OpenAPI is noticed', async () => {
  const broken = { ...parsed, paths: { '/x': { post: { responses: 5 } } } };
  expect((await new Validator().validate(broken)).valid).toBe(false);
});

test('has every path, under names of their own, and every field', () => {
  expect(Object.keys(parsed.paths)).toEqual([...gatewayMethods.keys()]);
  const names = Object.values(parsed.paths).map(({ post }) => post.operationId);
  expect(new Set(names).size).toBe(names.length);
  for (const { descriptor } of rpcMethods.values()) {
    for (const { typeName, fields } of [descriptor.input, descriptor.output]) {
      if (!/^(?:etcdserverpb|v3)/.test(typeName)) continue;
      const { properties = {} } = parsed.components.schemas[typeName] ?? {};
      expect([typeName, Object.keys(properties)]).toEqual([typeName, fields.map(({ name }) => name)]);
    }
  }
});
