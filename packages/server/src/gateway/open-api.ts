import type { DescEnum, DescField, DescMessage } from '@bufbuild/protobuf';
import { type RpcMethod } from '@tenure/protocol';
import { type FieldKind, kindOf } from './message-plan.ts';
import { gatewayMethods } from './gateway-paths.ts';

type Json = string | number | boolean | readonly Json[] | { readonly [name: string]: Json };
type JsonObject = Readonly<Record<string, Json>>;

const scalars: Readonly<Record<Exclude<FieldKind, 'enum' | 'message'>, JsonObject>> = {
  bool: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
  string: { type: 'string' },
  int32: { type: 'integer', format: 'int32' },
  uint32: { type: 'integer', format: 'int64', minimum: 0, maximum: 4_294_967_295 },
  int64: { type: 'string', format: 'int64' },
  sint64: { type: 'string', format: 'int64' },
  uint64: { type: 'string', format: 'uint64' },
};

const status = {
  type: 'object',
  properties: {
    code: { type: 'integer', format: 'int32', description: "gRPC's code." },
    message: { type: 'string' },
  },
};

/**
 * The description of the JSON gateway in the format of OpenAPI 3.0, made from the descriptors of the protocol: every
 * method, and every message that it needs.
 */
export function openApiDocument(version: string): JsonObject {
  const schemas: Record<string, Json> = { Status: status };
  const paths: Record<string, Json> = {};
  for (const [path, method] of gatewayMethods) {
    paths[path] = { post: operation(path, method, schemas) };
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Tenure: the JSON gateway of the etcd v3 API',
      version,
      description:
        'bytes are base64 and 64-bit integers are strings; empty fields are left out. Requests may also have fields ' +
        'in lowerCamelCase, integers as numbers, and unknown fields, which are ignored.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0.html' },
    },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    tags: [...new Set([...gatewayMethods.values()].map(tagOf))].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        token: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'The token of /v3/auth/authenticate, where authentication is enabled.',
        },
      },
    },
  };
}

function operation(path: string, method: RpcMethod, schemas: Record<string, Json>): JsonObject {
  const { input, output } = method.descriptor;
  const isStream = method.kind !== 'unary';
  const streamed = 'A JSON object a line, each with a result, until an error or the end.';
  const result = reference(output, schemas);
  const second = [...gatewayMethods].find(([, each]) => each === method)?.[0] !== path;
  return {
    operationId: `${tagOf(method)}_${method.name}${second ? '_2' : ''}`,
    tags: [tagOf(method)],
    summary: method.kind === 'bidi' ? 'The body may hold several messages, and stay open.' : method.path,
    requestBody: { content: { 'application/json': { schema: reference(input, schemas) } } },
    responses: {
      '200': {
        description: isStream ? streamed : 'The reply.',
        content: { 'application/json': { schema: isStream ? resultSchema(result) : result } },
      },
      default: {
        description: 'A refusal.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Status' } } },
      },
    },
  };
}

function resultSchema(result: JsonObject): JsonObject {
  return { type: 'object', properties: { result, error: { $ref: '#/components/schemas/Status' } } };
}

function tagOf({ service }: RpcMethod): string {
  return service.slice(service.lastIndexOf('.') + 1);
}

/** Adds the message, and those in it, to `schemas`. */
function reference(message: DescMessage, schemas: Record<string, Json>): JsonObject {
  const { typeName } = message;
  if (schemas[typeName] === undefined) {
    // A message may contain itself.
    schemas[typeName] = {};
    const properties = message.fields.map((field) => [field.name, fieldSchema(field, schemas)] as const);
    schemas[typeName] = { type: 'object', properties: Object.fromEntries(properties) };
  }
  return { $ref: `#/components/schemas/${typeName}` };
}

function fieldSchema(field: DescField, schemas: Record<string, Json>): JsonObject {
  const one = valueSchema(field, schemas);
  return field.fieldKind === 'list' ? { type: 'array', items: one } : one;
}

function valueSchema(field: DescField, schemas: Record<string, Json>): JsonObject {
  if (field.message !== undefined) return reference(field.message, schemas);
  if (field.enum !== undefined) return enumSchema(field.enum, schemas);
  const kind = kindOf(field);
  if (kind === 'enum' || kind === 'message') throw new Error(`${field.name} has no type`);
  return scalars[kind];
}

function enumSchema({ typeName, values }: DescEnum, schemas: Record<string, Json>): JsonObject {
  schemas[typeName] = { type: 'string', enum: values.map(({ name }) => name) };
  return { $ref: `#/components/schemas/${typeName}` };
}
