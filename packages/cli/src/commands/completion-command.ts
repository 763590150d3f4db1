import { Argument, type Command } from 'commander';
import { bashScript } from '../completion/bash-script.ts';
import type { CommandContext } from '../command-context.ts';

const afterHelp = `
  source <(tenure completion bash)                               # in ~/.bashrc
  tenure completion zsh > "\${fpath[1]}/_tenure"                  # once, in a folder of zsh's fpath
`;

/** `tenure completion` */
export function addCompletionCommand(program: Command, context: CommandContext): void {
  program
    .command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<SHELL>').choices(['bash', 'zsh']))
    .addHelpText('after', afterHelp)
    .action((shell: string, _options: unknown, command: Command) => {
      const script = bashScript(program).trimEnd();
      return context.output(command).lines([shell === 'bash' ? script : zshScript(script)]);
    });
}

/** zsh runs the completion function of bash through bashcompinit. */
function zshScript(script: string): string {
  return `#compdef tenure\nautoload -U +X bashcompinit && bashcompinit\n${script}`;
}
