import { expect, test } from 'vitest';
import { GrpcCode, GrpcStatus, okStatus } from './grpc-status.ts';

test('a status has no stack, and the next error has one', () => {
  const status = new GrpcStatus(GrpcCode.notFound, 'no such lease', 'it has ended');
  expect(status).toMatchObject({ name: 'GrpcStatus', code: 5, message: 'no such lease', reason: 'it has ended' });
  expect(status.stack).not.toContain('\n    at ');
  expect(new Error('a fault').stack).toContain('\n    at ');
});

test('the status of every call that went well is one object, which nothing changes', () => {
  expect(okStatus.code).toBe(GrpcCode.ok);
  expect(Object.isFrozen(okStatus)).toBe(true);
});
