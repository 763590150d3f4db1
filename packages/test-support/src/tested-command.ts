import { fileURLToPath } from 'node:url';

/** The built command. */
export const builtCommand = fileURLToPath(new URL('../../cli/bin/tenure.js', import.meta.url));

/** Names another command in the environment of a run. */
export const testedCommandVariable = 'TENURE_TEST_COMMAND';

/**
 * The `tenure` command that tests start as a server: the built packages in one file, which a run makes first and which
 * starts in half of the time, since most of a start is looking for four hundred files. Tests of what is installed start
 * the command as it is packed. `TENURE_TEST_COMMAND` names another, such as `packages/cli/bin/tenure.js`, for a
 * debugger.
 */
export function testedCommand(): string {
  return process.env[testedCommandVariable] ?? builtCommand;
}
