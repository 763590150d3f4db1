import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GrpcStatus } from './grpc-status.ts';
import { parseGrpcTimeout } from './grpc-timeout.ts';

test('every unit is converted, up to the largest number that gRPC allows', () => {
  const units: [string, number][] = [
    ['H', 3.6e6],
    ['M', 6e4],
    ['S', 1e3],
    ['m', 1],
    ['u', 1e-3],
    ['n', 1e-6],
  ];
  const digits = fc.integer({ min: 0, max: 99_999_999 });
  fc.assert(
    fc.property(digits, fc.constantFrom(...units), (number, [unit, milliseconds]) => {
      expect(parseGrpcTimeout(`${number}${unit}`)).toBeCloseTo(number * milliseconds, 6);
    }),
  );
});

test('anything else is refused', () => {
  for (const value of ['', 'S', '5', '123456789S', '5s', '-5S', '5.5S', ' 5S', '+5S', '0x5S']) {
    expect(() => parseGrpcTimeout(value), value).toThrow(GrpcStatus);
  }
});
