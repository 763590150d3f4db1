import { ChildProgram } from './child-program.ts';
import { testedCommand } from './tested-command.ts';

const readyPattern = /ready to serve client requests on ([^\s"]+)/;

/** The built command as a child process. */
export class ServeProcess extends ChildProgram {
  /**
   * `args` are those of the whole command: ['serve', ...]. `under` is a command that runs it, such as a tracer, and
   * must keep the same process. The test run's own variables are not passed to the server.
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
