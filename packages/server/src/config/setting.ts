import { ConfigError } from './config-error.ts';

/** One setting, from which the flag, the environment variable and the line of help are generated. */
export interface Setting<T> {
  readonly group:
    | 'Member'
    | 'Clients'
    | 'Authentication'
    | 'TLS'
    | 'Servers'
    | 'Leases'
    | 'Storage'
    | 'Limits'
    | 'Logs';
  /** The placeholder of the value in the help. */
  readonly value: string;
  /** Parsed like a given text when neither flag nor environment has one. */
  readonly fallback: string;
  /** The fallback in the help, where its text says too little. */
  readonly fallbackShown?: string;
  readonly help: string;
  /** True for a flag that means `true` when no value follows it. */
  readonly isSwitch?: boolean;
  /** Throws ConfigError with the reason. */
  readonly parse: (text: string) => T;
}

export const setting = <T>(definition: Setting<T>): Setting<T> => definition;

export function oneOf<T extends string>(...choices: readonly T[]): (text: string) => T {
  return (text) => {
    const choice = choices.find((each) => each === text);
    if (choice === undefined) throw new ConfigError(`must be one of ${choices.join(', ')}`);
    return choice;
  };
}

export function wholeNumber(limits: { min: number; max: number }): (text: string) => number {
  return (text) => {
    const number = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
    if (!(number >= limits.min && number <= limits.max)) {
      throw new ConfigError(`must be a whole number from ${limits.min} to ${limits.max}`);
    }
    return number;
  };
}

export function trueOrFalse(text: string): boolean {
  return oneOf('true', 'false')(text) === 'true';
}
