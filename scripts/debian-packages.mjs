// The programs that tests compare with or run on, and how CI installs the missing ones.
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './prepare.mjs';

/** The evidence that a package is installed: a program on the PATH, or a file where Debian puts it. */
const packages = [
  { name: 'etcd-server', program: 'etcd' },
  { name: 'etcd-client', program: 'etcdctl' },
  { name: 'nghttp2-client', program: 'h2load' },
  { name: 'curl', program: 'curl' },
  { name: 'strace', program: 'strace' },
  { name: 'faketime', program: 'faketime' },
  { name: 'openssl', program: 'openssl' },
  { name: 'zsh', program: 'zsh' },
  { name: 'postgresql', isThere: hasPostgres },
  { name: 'patroni', program: 'patroni' },
  { name: 'pgbouncer', isThere: () => existsSync('/usr/sbin/pgbouncer') },
  { name: 'mariadb-server', isThere: () => existsSync('/usr/sbin/mariadbd') },
];

/** A package that starts a service on install would hold etcd's ports; 101 tells invoke-rc.d not to. */
const forbidServices = String.raw`
  file=/usr/sbin/policy-rc.d
  [ -e $file ] || { printf '#!/bin/sh\nexit 101\n' > $file && chmod +x $file; }`;

/** Installs missing packages and resolves with 0 when all are installed. Needs root, or sudo without a password. */
export async function installDebianPackages() {
  const missing = packages
    .filter(({ program, isThere = () => isOnPath(program) }) => !isThere())
    .map(({ name }) => name);
  if (missing.length === 0) return 0;
  console.log(`installing ${missing.join(', ')}`);
  const asRoot = (...command) => {
    const [program, ...args] =
      process.getuid?.() === 0 ? command : ['sudo', '--non-interactive', '--preserve-env', ...command];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    return run(program, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  };
  const steps = [
    ['sh', '-c', forbidServices],
    ['apt-get', '-qq', 'update'],
    ['apt-get', '-qq', 'install', '-y', '--no-install-recommends', ...missing],
  ];
  for (const step of steps) {
    const code = await asRoot(...step);
    if (code !== 0) return code;
  }
  return 0;
}

function isOnPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));
}

function hasPostgres() {
  const versions = '/usr/lib/postgresql';
  return existsSync(versions) && readdirSync(versions).some((each) => existsSync(join(versions, each, 'bin/postgres')));
}
