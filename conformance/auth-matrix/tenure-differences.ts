import { rpcMethods } from '@tenure/protocol';
import type { AuthMatrix } from './matrix.ts';

const noUser = '3 etcdserver: user name is empty';
const invalidToken = '16 etcdserver: invalid auth token';
const denied = '7 etcdserver: permission denied';

/** Where Tenure answers otherwise than etcd, as code and text: docs/decisions/022 and 031 say why. */
const different: AuthMatrix = {
  '/etcdserverpb.Cluster/MemberAdd': {
    // No member of Tenure has a peer URL.
    'the URL of a member': { root: '3 etcdserver: given member URLs are invalid' },
    // Who may not ask is not told what is wrong with the request.
    'no URL': {
      'a reader': denied,
      'a reader and writer': denied,
      'a user without roles': denied,
      'a writer': denied,
      'an invalid token': invalidToken,
      'no token': noUser,
      'the token of a deleted user': invalidToken,
    },
  },
};

/** Etcd's answers, with those that Tenure gives instead. Throws when a difference names nothing that is recorded. */
export function asTenureAnswers(recorded: AuthMatrix): AuthMatrix {
  const answers = structuredClone(recorded);
  for (const [path, requests] of Object.entries(different)) {
    for (const [label, callers] of Object.entries(requests)) {
      const row = answers[path]?.[label];
      if (row === undefined) throw new Error(`nothing is recorded of ${path} with ${label}`);
      Object.assign(row, callers);
    }
  }
  answerEmptyTransaction(answers);
  answerUnimplemented(answers);
  return answers;
}

/** A transaction that does nothing takes a user. */
function answerEmptyTransaction(answers: AuthMatrix): void {
  const rows = Object.values(answers['/etcdserverpb.KV/Txn'] ?? {}).filter((row) => row['no token'] === 'OK');
  if (rows.length !== 1) throw new Error('etcd has answered one transaction without a token');
  for (const row of rows) row['no token'] = noUser;
}

/** The methods that are not there yet answer so to every caller. */
function answerUnimplemented(answers: AuthMatrix): void {
  const absent = [...rpcMethods.values()].filter(({ service }) => service.startsWith('v3'));
  for (const { path, name } of absent) {
    for (const row of Object.values(answers[path] ?? {})) {
      for (const caller of Object.keys(row)) row[caller] = `12 ${name} is not implemented by this version of Tenure`;
    }
  }
}
