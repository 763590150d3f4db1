import { flagOf, variableOf } from './flags.ts';
import type { Setting } from './setting.ts';
import { type SettingName, settings } from './settings.ts';

const indent = ' '.repeat(6);
const lineColumns = 100;

/** The text of `tenure serve --help`, generated from the table of settings. */
export function helpText(): string {
  const entries = Object.entries(settings) as [SettingName, Setting<unknown>][];
  const groups = [...new Set(entries.map(([, setting]) => setting.group))];
  const sections = groups.map((group) => {
    const lines = entries
      .filter(([, setting]) => setting.group === group)
      .map(([name, setting]) => entry(name, setting));
    return `${group}:\n${lines.join('\n')}`;
  });
  return [
    'Usage: tenure serve [flags]\n\nRuns one lease server that speaks the etcd v3 API, in this process.\n' +
      'Each flag can be given as an environment variable too; the flag wins.',
    ...sections,
    'Other:\n  --help     Show this text.\n  --version  Show the version.',
    'It prints a line with "ready to serve client requests" once it is. SIGTERM and SIGINT end it within 5 s.\n' +
      'Exit codes: 0 after a signal, 1 when it failed, 2 when a flag or a variable is wrong.',
  ].join('\n\n');
}

function entry(name: SettingName, setting: Setting<unknown>): string {
  const shown = setting.fallbackShown ?? setting.fallback;
  const help = wrap(`${setting.help} Default: ${shown}. [${variableOf(name)}]`);
  return `  ${flagOf(name)} ${setting.value}\n${help}`;
}

function wrap(text: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > lineColumns) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.map((each) => indent + each).join('\n');
}
