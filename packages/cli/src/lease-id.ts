import { CliError } from './cli-error.ts';

/** The int64 that 1 to 16 hex digits stand for, as etcdctl writes lease ids. Throws CliError `usage`. */
export function parseLeaseId(text: string): bigint {
  if (!/^[0-9a-fA-F]{1,16}$/.test(text)) {
    throw new CliError('usage', `the lease id ${JSON.stringify(text)} must be 1 to 16 hex digits`);
  }
  return BigInt.asIntN(64, BigInt(`0x${text}`));
}

/** 16 hex digits. */
export function formatLeaseId(id: bigint): string {
  return BigInt.asUintN(64, id).toString(16).padStart(16, '0');
}
