import { ConfigError } from './config-error.ts';
import type { Setting } from './setting.ts';
import { type SettingName, settings } from './settings.ts';

/** '--data-dir' for dataDir. */
export function flagOf(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** 'TENURE_DATA_DIR' for dataDir. */
export function variableOf(name: SettingName): string {
  return `TENURE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export interface Flags {
  readonly values: ReadonlyMap<SettingName, string>;
  readonly help: boolean;
  readonly version: boolean;
}

const names = new Map((Object.keys(settings) as SettingName[]).map((name) => [flagOf(name), name]));

/** Flags of etcd that users will try, and why Tenure does not have them. */
const notHere: readonly { readonly flags: RegExp; readonly reason: string }[] = [
  {
    flags: /^--(initial-.*|advertise-peer-urls|discovery.*|force-new-cluster)$/,
    reason: 'servers join by starting with the same shared --engine',
  },
  {
    flags: /^--client-(cert|key)-file$/,
    reason: 'this server is no client of its own, so it needs no certificate of one',
  },
  {
    flags: /^--(wal-dir|max-wals|max-snapshots)$/,
    reason: 'the log and its snapshots live in --data-dir and are trimmed',
  },
];

/**
 * Reads `--flag value`, `--flag=value`, a switch alone and, as etcd does, the same with one dash. The last of several
 * takes precedence. Throws ConfigError.
 */
export function readFlags(argv: readonly string[]): Flags {
  const values = new Map<SettingName, string>();
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    if (!word.startsWith('-') || word === '-' || word === '--') {
      throw new ConfigError(`unexpected argument ${JSON.stringify(word)}: see tenure serve --help`);
    }
    const equals = word.indexOf('=');
    const flag = (equals < 0 ? word : word.slice(0, equals)).replace(/^-(?!-)/, '--');
    if (flag === '--help' || flag === '--h') return { values, help: true, version: false };
    if (flag === '--version') return { values, help: false, version: true };
    const name = names.get(flag);
    if (name === undefined) throw unknownFlag(flag);
    const setting: Setting<unknown> = settings[name];
    const next = argv[at + 1];
    const isAlone = equals < 0 && setting.isSwitch === true && next !== 'true' && next !== 'false';
    if (equals < 0 && !isAlone) at += 1;
    const value = isAlone ? 'true' : equals < 0 ? next : word.slice(equals + 1);
    if (value === undefined) throw new ConfigError(`${flag} needs a value: see tenure serve --help`);
    values.set(name, value);
  }
  return { values, help: false, version: false };
}

function unknownFlag(flag: string): ConfigError {
  const known = notHere.find(({ flags }) => flags.test(flag));
  return new ConfigError(
    known === undefined ? `unknown flag ${flag}: see tenure serve --help` : `${flag}: ${known.reason}`,
  );
}
