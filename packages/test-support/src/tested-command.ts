import { fileURLToPath } from 'node:url';

/** The built command. */
export const builtCommand = fileURLToPath(new URL('../../cli/bin/tenure.js', import.meta.url));

/** The environment variable that names another command. */
export const testedCommandVariable = 'TENURE_TEST_COMMAND';

/**
 * The `tenure` command that tests start as a server: the built packages in one file, which a test run creates first, as
 * `npm run build` does for a checkout. Tests of the installed package start the command as it is packed, with a file
 * for each module. `TENURE_TEST_COMMAND` names another, such as `packages/cli/bin/tenure.js`,
 * for a debugger.
 */
export function testedCommand(): string {
  return process.env[testedCommandVariable] ?? builtCommand;
}
