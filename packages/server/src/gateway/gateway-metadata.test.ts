import { expect, test } from 'vitest';
import { GrpcCode } from '@tenure/grpc-server';
import { metadataOf, timeoutMsOf } from './gateway-metadata.ts';

test('the token and Grpc-Metadata- headers are metadata, and no other header', () => {
  const headers = {
    authorization: 'token',
    host: 'x',
    'grpc-metadata-hasleader': 'true',
    'grpc-metadata-': '1',
    'grpc-metadata-grpc-timeout': '1S',
    'grpc-metadata-:path': '/x',
    'grpc-metadata-authorization': 'other',
  };
  expect(metadataOf(headers)).toEqual({ authorization: 'token', hasleader: 'true' });
});

test.each([
  ['1S', 1000],
  ['2m', 2],
  ['1H', 3_600_000],
  ['5u', 0.005],
  ['-1S', -1000],
  ['0n', Infinity],
  ['', Infinity],
])('a timeout of %j is %d ms', (value, expected) => {
  expect(timeoutMsOf({ 'grpc-timeout': value })).toBeCloseTo(expected);
});

test.each(['1', 'S', '1X', '1.5S', '9999999999999999999S', ' 1S'])('a timeout of %j is refused', (value) => {
  expect(() => timeoutMsOf({ 'grpc-timeout': value })).toThrow(
    expect.objectContaining({ code: GrpcCode.invalidArgument, message: `invalid grpc-timeout: ${value}` }),
  );
});
