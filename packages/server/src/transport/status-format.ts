import type { StatusFormat } from '@tenure/grpc-server';
import { exactText, reasonTrailer } from '@tenure/protocol';
import { statusNamed } from './named-status.ts';

/** Statuses as etcd's clients know them: no text of etcd gets a suffix, the reason has a trailer of its own. */
export const statusFormat: StatusFormat = Object.freeze({
  textOf: exactText,
  reasonTrailer,
  stopped: statusNamed('Stopped'),
});
