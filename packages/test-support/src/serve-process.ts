import { ChildProgram } from './child-program.ts';
import { testedCommand } from './tested-command.ts';

const readyPattern = /ready to serve client requests on ([^\s"]+)/;

/** The built command as a process of its own. */
export class ServeProcess extends ChildProgram {
  /**
   * `args` are those of the whole command: ['serve', ...]. `under` is a command that runs it, such as a tracer, and
   * must leave it the process that was started. Variables of the run of the tests are none of a server's.
   */
  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, under: readonly string[] = []) {
    const { PATH = '' } = process.env;
    const [program = process.execPath, ...rest] = [...under, process.execPath, testedCommand(), ...args];
    super({ program, args: rest, env: { PATH, ...env } });
  }

  /** Resolves with the URLs that it serves on; rejects when it ends before. */
  async ready(): Promise<readonly string[]> {
    const urls = readyPattern.exec(await this.printed(readyPattern))?.[1] ?? '';
    return urls.split(',');
  }
}
