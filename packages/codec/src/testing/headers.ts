import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { type ResponseHeader, responseHeaderPrefix } from '../response-header.ts';
import { etcdserverpb } from '@tenure/protocol';

type HeaderMessage = etcdserverpb.ResponseHeader;
const { ResponseHeaderSchema } = etcdserverpb;

const uint64 = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 63n, 2n ** 64n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);
const revision = fc.oneof(fc.nat(3), fc.maxSafeNat());

/** A header for the hand-written codecs, and as the generated message. */
export const headerInBothForms: fc.Arbitrary<{ readonly header: ResponseHeader; readonly message: HeaderMessage }> = fc
  .record({ clusterId: uint64, memberId: uint64, revision, raftTerm: revision })
  .map((it) => ({
    header: {
      prefix: responseHeaderPrefix(it.clusterId, it.memberId),
      revision: it.revision,
      raftTerm: it.raftTerm,
    },
    message: create(ResponseHeaderSchema, {
      clusterId: it.clusterId,
      memberId: it.memberId,
      revision: BigInt(it.revision),
      raftTerm: BigInt(it.raftTerm),
    }),
  }));
