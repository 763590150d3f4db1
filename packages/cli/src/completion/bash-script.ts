import type { Command, Option } from 'commander';

/**
 * The completion script for bash, generated from the declared commands and flags. Their names have no character that is
 * special to a shell.
 */
export function bashScript(program: Command): string {
  const flags = [...new Set(everyCommand(program).flatMap(({ command }) => command.options))];
  const withValue = flags.filter((flag) => flag.required || flag.optional).flatMap(spellings);
  const choices = flags.filter((flag) => flag.argChoices !== undefined);
  return `# Completion of the tenure command: source it, or keep it in a folder of bash-completion.
_tenure_words() {
  case "$1" in
${everyCommand(program)
  .map(({ place, words }) => `    "${place}") echo "${words.join(' ')}" ;;`)
  .join('\n')}
  esac
}

_tenure() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" place="" word at
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    case "$word" in
      --)
        if ((at == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- "$current")); fi
        return ;;
      ${[...new Set(withValue)].join('|')}) at=$((at + 1)) ;;
      -*) ;;
      *) if [ -n "$(_tenure_words "$place\${place:+ }$word")" ]; then place="$place\${place:+ }$word"; fi ;;
    esac
  done
  case "$before" in
${choices.map(choiceCase).join('\n')}
    ${[...new Set(withValue)].join('|')}) return ;;
  esac
  COMPREPLY=($(compgen -W "$(_tenure_words "$place")" -- "$current"))
}

complete -o default -F _tenure tenure
`;
}

function choiceCase(flag: Option): string {
  const words = (flag.argChoices ?? []).join(' ');
  return `    ${spellings(flag).join('|')}) COMPREPLY=($(compgen -W "${words}" -- "$current")); return ;;`;
}

interface Place {
  readonly command: Command;
  /** The full name of a command, such as `lease grant`. */
  readonly place: string;
  readonly words: readonly string[];
}

function everyCommand(program: Command): readonly Place[] {
  const visit = (command: Command, place: string): Place[] => {
    const names = command.commands.map((each) => each.name());
    const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? []);
    const own = command === program ? [] : command.options.flatMap(spellings);
    const words = [...names, ...choices, ...own, ...program.options.flatMap(spellings), '--help'];
    const below = command.commands.flatMap((each) =>
      visit(each, place === '' ? each.name() : `${place} ${each.name()}`),
    );
    return [{ command, place, words }, ...below];
  };
  return visit(program, '');
}

function spellings(option: Option): string[] {
  return [option.short, option.long].filter((text) => text !== undefined && text !== null);
}
