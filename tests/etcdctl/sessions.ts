import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Recorder } from './recorder.ts';

type Session = (ctl: Recorder) => Promise<void>;

async function keys(ctl: Recorder): Promise<void> {
  await ctl.run(['put', 'a', '1']);
  await ctl.run(['put', 'a', '2', '--prev-kv']);
  await ctl.run(['put', 'b'], 'from stdin');
  await ctl.run(['put', 'c', '1', '-w', 'json']);
  await ctl.run(['get', 'a', '-w', 'json']);
  await ctl.run(['get', 'a', '-w', 'fields']);
  await ctl.run(['get', '', '--prefix', '--order=DESCEND', '--sort-by=VALUE', '--limit=2']);
  await ctl.run(['get', 'a', '--rev=2']);
  await ctl.run(['get', 'a', '--rev=99']);
  await ctl.run(['get', 'missing']);
  await ctl.run(['del', 'a', '--prev-kv']);
  await ctl.run(['del', '', '--prefix', '-w', 'json']);
  await ctl.run(['put', '', 'no key']);
  await ctl.run(['compaction', '3']);
  await ctl.run(['compaction', '3']);
  await ctl.run(['compaction', '99']);
  await ctl.run(['get', 'a', '--rev=2']);
}

async function transactions(ctl: Recorder): Promise<void> {
  await ctl.run(['put', 'a', '1']);
  await ctl.run(['txn'], 'value("a") = "1"\n\nput a 2\nget a\ndel nothing\n\nput a 3\n\n');
  await ctl.run(['txn', '-w', 'json'], 'mod("a") > "9"\n\n\nget a\n\n');
  await ctl.run(['txn', '--interactive'], 'version("a") = "2"\n\nput a 3\n\nput a 4\n\n');
  await ctl.run(['txn'], '\nput a 1\nput a 2\n\n\n');
  await ctl.run(['get', 'a']);
}

async function watches(ctl: Recorder): Promise<void> {
  const seen = /PUT\nw\n1\nDELETE\nw\n\n/;
  await ctl.run(['put', 'w', '1']);
  await ctl.run(['del', 'w']);
  await ctl.until(seen, ['watch', 'w', '--rev=2']);
  await ctl.until(seen, ['watch', '--interactive'], { input: 'watch w --rev=2\n' });
  await ctl.run(['put', 'once', '1']);
  await ctl.until(/^PUT\nonce\n1\nexecuted\n$/, ['watch', 'once', '--rev=2', '--', 'echo', 'executed']);
  await ctl.run(['compaction', '3']);
  await ctl.run(['watch', 'w', '--rev=2']);
}

async function leases(ctl: Recorder): Promise<void> {
  const [, id = ''] = /^lease (\S+) granted/.exec(await ctl.run(['lease', 'grant', '600'])) ?? [];
  await ctl.run(['put', 'leased', 'v', `--lease=${id}`]);
  await ctl.until(/granted with TTL\(600s\), remaining\(\d+s\), attached keys\(\[leased\]\)/, [
    ...['lease', 'timetolive', id, '--keys'],
  ]);
  await ctl.run(['lease', 'list']);
  await ctl.run(['lease', 'keep-alive', id, '--once']);
  await ctl.until(/keepalived with TTL\(600\)\n/, ['lease', 'keep-alive', id]);
  await ctl.run(['lease', 'revoke', id]);
  await ctl.run(['lease', 'revoke', id]);
  await ctl.run(['lease', 'keep-alive', id, '--once']);
  await ctl.run(['lease', 'timetolive', id]);
  await ctl.run(['get', 'leased']);
  await ctl.run(['lease', 'list', '-w', 'json']);
}

async function locks(ctl: Recorder): Promise<void> {
  await ctl.run(['lock', 'job', 'echo', 'mine']);
  await ctl.until(/^job\/[0-9a-f]+\n/, ['lock', 'job']);
  await ctl.until(/^leads\/[0-9a-f]+\nmyself\n/, ['elect', 'leads', 'myself'], {
    next: () => ctl.until(/^leads\/[0-9a-f]+\nmyself\n/, ['elect', '--listen', 'leads']),
  });
}

async function members(ctl: Recorder): Promise<void> {
  const id = await ctl.memberId();
  await ctl.run(['member', 'remove', '5']);
  await ctl.run(['member', 'remove', id]);
  await ctl.run(['member', 'promote', id]);
  await ctl.run(['member', 'promote', '5']);
  await ctl.run(['move-leader', '5']);
  await ctl.run(['move-leader', id]);
}

async function maintenance(ctl: Recorder): Promise<void> {
  await ctl.run(['put', 'a', '1']);
  await ctl.run(['alarm', 'list']);
  await ctl.run(['alarm', 'disarm']);
  await ctl.run(['defrag']);
  await ctl.run(['endpoint', 'health', '-w', 'simple']);
  await ctl.run(['version']);
  await ctl.run(['help', 'put']);
  const folder = mkdtempSync(join(tmpdir(), 'etcdctl-session-'));
  try {
    await ctl.run(['snapshot', 'save', join(folder, 'saved')]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function datascale(ctl: Recorder): Promise<void> {
  await ctl.runQuietly(['check', 'datascale', '--load=s', '--auto-compact', '--auto-defrag']);
  await ctl.run(['get', '', '--prefix', '--keys-only']);
}

async function mirror(ctl: Recorder): Promise<void> {
  const copies = ['get', 'copy/', '--prefix'];
  await ctl.run(['put', 'from/1', 'one']);
  await ctl.beside(['make-mirror', '--prefix=from/', '--dest-prefix=copy/', ctl.address], async () => {
    await ctl.polled(copies, 'copy/1\none\n');
    await ctl.run(['put', 'from/2', 'two']);
    await ctl.polled(copies, 'copy/1\none\ncopy/2\ntwo\n');
    await ctl.run(['del', 'from/1']);
    await ctl.polled(copies, 'copy/2\ntwo\n');
  });
}

async function accounts(ctl: Recorder): Promise<void> {
  await ctl.run(['auth', 'enable']);
  await ctl.run(['user', 'add', 'ada:secret']);
  await ctl.run(['user', 'add', 'ada:secret']);
  await ctl.run(['user', 'add', 'typed', '--interactive=false'], 'typed\n');
  await ctl.run(['user', 'add', 'machine', '--no-password']);
  await ctl.run(['user', 'passwd', 'ada', '--interactive=false'], 'other\n');
  await ctl.run(['role', 'add', 'reader']);
  await ctl.run(['role', 'add', 'reader']);
  await ctl.run(['role', 'grant-permission', 'reader', 'readwrite', 'a', 'b']);
  await ctl.run(['role', 'grant-permission', 'reader', 'read', '--prefix', 'p/']);
  await ctl.run(['role', 'grant-permission', 'reader', 'write', '--from-key', 'z']);
  await ctl.run(['role', 'grant-permission', 'reader', 'bogus', 'z']);
  await ctl.run(['role', 'get', 'reader']);
  await ctl.run(['role', 'get', 'reader', '-w', 'json']);
  await ctl.run(['role', 'list']);
  await ctl.run(['user', 'grant-role', 'ada', 'reader']);
  await ctl.run(['user', 'grant-role', 'ada', 'nosuch']);
  await ctl.run(['user', 'get', 'ada']);
  await ctl.run(['user', 'get', 'ada', '--detail']);
  await ctl.run(['user', 'list', '-w', 'json']);
  await ctl.run(['user', 'revoke-role', 'ada', 'reader']);
  await ctl.run(['role', 'revoke-permission', 'reader', 'a', 'b']);
  await ctl.run(['role', 'revoke-permission', 'reader', 'p/', '--prefix']);
  await ctl.run(['role', 'revoke-permission', 'reader', 'nosuch']);
  await ctl.run(['role', 'delete', 'reader']);
  await ctl.run(['user', 'delete', 'typed']);
  await ctl.run(['user', 'delete', 'nosuch']);
  await ctl.run(['user', 'get', 'nosuch']);
  await ctl.run(['user', 'add', 'root:root']);
  await ctl.run(['user', 'grant-role', 'root', 'root']);
  await ctl.run(['auth', 'enable']);
  await ctl.run(['get', 'a']);
  await ctl.run(['--user=ada:wrong', 'get', 'a']);
  await ctl.run(['--user=ada:other', 'get', 'a']);
  await ctl.run(['--user=root:root', 'put', 'a', '1']);
  await ctl.run(['--user=root:root', 'auth', 'disable']);
  await ctl.run(['get', 'a']);
}

/** Commands that etcdctl has since 3.5. */
async function newer(ctl: Recorder): Promise<void> {
  await ctl.run(['auth', 'status']);
  await ctl.run(['auth', 'status', '-w', 'json']);
  await ctl.run(['downgrade', 'validate', '3.6']);
  await ctl.run(['downgrade', 'validate', 'nonsense']);
  await ctl.run(['downgrade', 'enable', '3.4']);
  await ctl.run(['downgrade', 'cancel']);
}

/** Each on a server of its own, so that revisions are the same. */
export const sessions: Readonly<Record<string, Session>> = {
  keys,
  transactions,
  watches,
  leases,
  locks,
  members,
  maintenance,
  datascale,
  mirror,
  accounts,
};
export const newerSessions: Readonly<Record<string, Session>> = { newer };
