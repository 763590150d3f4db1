// The programs that tests compare with or run on, and how CI gets those that the machine lacks.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './prepare.mjs';

/** What shows that a package is installed: a program on the PATH, or a file where Debian puts it. */
const packages = [
  { name: 'etcd-server', program: 'etcd' },
  { name: 'etcd-client', program: 'etcdctl' },
  { name: 'nghttp2-client', program: 'h2load' },
  { name: 'strace', program: 'strace' },
  { name: 'faketime', program: 'faketime' },
  { name: 'openssl', program: 'openssl' },
  { name: 'zsh', program: 'zsh' },
  { name: 'postgresql', isThere: hasPostgres },
  { name: 'pgbouncer', isThere: () => existsSync('/usr/sbin/pgbouncer') },
  { name: 'mariadb-server', isThere: () => existsSync('/usr/sbin/mariadbd') },
];

const policyFile = '/usr/sbin/policy-rc.d';

/** Installs what is missing and resolves with 0 when all packages are there. Needs root, or sudo without questions. */
export async function installDebianPackages() {
  const missing = packages
    .filter(({ program, isThere = () => isOnPath(program) }) => !isThere())
    .map(({ name }) => name);
  if (missing.length === 0) return 0;
  console.log(`installing ${missing.join(', ')}`);
  const isRoot = process.getuid?.() === 0;
  // A package that starts a service on install would hold etcd's ports; 101 tells invoke-rc.d not to.
  if (isRoot && !existsSync(policyFile)) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  const apt = (...args) => {
    const command = ['apt-get', '-qq', ...args];
    const [program, ...rest] = isRoot ? command : ['sudo', '--non-interactive', ...command];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    return run(program, rest, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  };
  const code = await apt('update');
  return code === 0 ? apt('install', '-y', '--no-install-recommends', ...missing) : code;
}

function isOnPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));
}

function hasPostgres() {
  const versions = '/usr/lib/postgresql';
  return existsSync(versions) && readdirSync(versions).some((each) => existsSync(join(versions, each, 'bin/postgres')));
}
