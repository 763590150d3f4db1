import { CliError } from '../cli-error.ts';

/** A parser for a whole number, 0 or more. It throws a CliError `usage`, which names the option. */
export function numberOption(name: string): (text: string) => bigint {
  return (text) => {
    if (!/^\d{1,18}$/.test(text)) {
      throw new CliError('usage', `${name} ${JSON.stringify(text)} must be a whole number, 0 or more`);
    }
    return BigInt(text);
  };
}
