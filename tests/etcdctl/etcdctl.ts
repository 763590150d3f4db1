import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { etcdProgram } from '@tenure/test-support';

/** The etcdctl of the etcd that tests start: the one beside it if TENURE_TEST_ETCD names an etcd. */
export const etcdctlProgram = etcdProgram === 'etcd' ? 'etcdctl' : besideEtcd();

const { ETCDCTL_API: _unused, ...inherited } = process.env;

/** Only etcdctl 3.4 reads the variable for the version of the API, and later ones print a warning about it. */
export const etcdctlEnv: NodeJS.ProcessEnv = isOld() ? { ...inherited, ETCDCTL_API: '3' } : inherited;

/** Such as '3.4'; undefined without etcdctl. */
export function etcdctlVersion(): string | undefined {
  const { status, stdout } = spawnSync(etcdctlProgram, ['version'], { encoding: 'utf8', env: etcdctlEnv });
  return status === 0 ? /etcdctl version: (\d+\.\d+)/.exec(stdout)?.[1] : undefined;
}

export function helpText(): string {
  return spawnSync(etcdctlProgram, ['help'], { encoding: 'utf8', env: etcdctlEnv }).stdout;
}

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs it to its end. */
export function runEtcdctl(args: readonly string[], input = ''): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(etcdctlProgram, args, { env: etcdctlEnv }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
    });
    // A command that exits without reading its input is not an error of the test.
    child.stdin?.on('error', () => undefined).end(input);
  });
}

function besideEtcd(): string {
  const path = join(dirname(etcdProgram), 'etcdctl');
  return existsSync(path) ? path : 'etcdctl';
}

function isOld(): boolean {
  const { stdout } = spawnSync(etcdctlProgram, ['version'], {
    encoding: 'utf8',
    env: { ...inherited, ETCDCTL_API: '3' },
  });
  return /etcdctl version: 3\.[0-4]\./.test(stdout);
}
