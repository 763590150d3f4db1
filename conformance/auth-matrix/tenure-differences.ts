import type { AuthMatrix } from './matrix.ts';

/** Where Tenure answers root otherwise than etcd, for reasons that have nothing to do with auth: code and text. */
const answersToRoot: AuthMatrix = {
  '/etcdserverpb.Cluster/MemberAdd': {
    'the URL of a member': { root: '9 etcdserver: not capable' },
  },
};

/** Etcd's answers, with those that Tenure gives instead. Throws when a difference names nothing that is recorded. */
export function asTenureAnswers(recorded: AuthMatrix): AuthMatrix {
  const answers = structuredClone(recorded);
  for (const [path, requests] of Object.entries(answersToRoot)) {
    for (const [label, callers] of Object.entries(requests)) {
      const row = answers[path]?.[label];
      if (row === undefined) throw new Error(`nothing is recorded of ${path} with ${label}`);
      Object.assign(row, callers);
    }
  }
  return answers;
}
