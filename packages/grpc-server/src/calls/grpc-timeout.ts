import { GrpcCode, GrpcStatus } from './grpc-status.ts';

const millisecondsPerUnit: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

const maxDigits = 8;

/**
 * The value of a `grpc-timeout` header ('250m', '5S') in milliseconds, not rounded. A malformed one is refused as
 * Internal, with the text of Go's server. Eight digits of hours are far below the exact range of a double, so nothing
 * overflows; the caller that sets a timer handles the timer's range.
 */
export function parseGrpcTimeout(value: string): number {
  if (value.length < 2) throw malformed(`timeout string is too short: ${JSON.stringify(value)}`);
  if (value.length > maxDigits + 1) throw malformed(`timeout string is too long: ${JSON.stringify(value)}`);
  const unit = millisecondsPerUnit[value.slice(-1)];
  if (unit === undefined) throw malformed(`timeout unit is not recognized: ${JSON.stringify(value)}`);
  const digits = value.slice(0, -1);
  if (!/^[0-9]+$/.test(digits)) throw malformed(`timeout is not a number: ${JSON.stringify(value)}`);
  return Number(digits) * unit;
}

function malformed(reason: string): GrpcStatus {
  return new GrpcStatus(GrpcCode.internal, `malformed grpc-timeout: transport: ${reason}`);
}
