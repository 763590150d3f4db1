import type { AuthMatrix } from './matrix.ts';

const noUser = '3 etcdserver: user name is empty';
const invalidToken = '16 etcdserver: invalid auth token';
const denied = '7 etcdserver: permission denied';

/** Where Tenure answers otherwise than etcd, as code and text: docs/decisions/022, 031 and 033 say why. */
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
  // Etcd ends the stream as if all were well.
  '/v3electionpb.Election/Observe': {
    'a key': {
      'a user without roles': denied,
      'a writer': denied,
      'an invalid token': invalidToken,
      'no token': noUser,
      'the token of a deleted user': invalidToken,
    },
    'a foreign key': {
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
  return answers;
}

/** A transaction that does nothing takes a user. */
function answerEmptyTransaction(answers: AuthMatrix): void {
  const rows = Object.values(answers['/etcdserverpb.KV/Txn'] ?? {}).filter((row) => row['no token'] === 'OK');
  if (rows.length !== 1) throw new Error('etcd has answered one transaction without a token');
  for (const row of rows) row['no token'] = noUser;
}
