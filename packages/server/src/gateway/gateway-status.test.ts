import { describe, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { errorLine, httpStatusOf, statusJson } from './gateway-status.ts';

describe('a status', () => {
  test('is its code and text as JSON, and the code alone without a text', () => {
    expect(statusJson(new GrpcStatus(GrpcCode.notFound, 'a "b"\n'))).toBe(String.raw`{"code":5,"message":"a \"b\"\n"}`);
    expect(statusJson(new GrpcStatus(GrpcCode.notFound, ''))).toBe('{"code":5}');
    expect(errorLine(new GrpcStatus(GrpcCode.notFound, 'a'))).toBe('{"error":{"code":5,"message":"a"}}\n');
  });

  test('has an HTTP status for every code', () => {
    const statuses = Object.values(GrpcCode).map((code) => httpStatusOf(new GrpcStatus(code, '')));
    expect(statuses).toEqual([200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401]);
  });
});
