import { create, fromBinary, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { peerpb } from '@tenure/protocol';
import { frameHeadroomBytes } from '@tenure/codec';
import { afterEach, expect, test } from 'vitest';
import type { GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall } from '../../transport/transport.ts';
import { testConnection } from '@tenure/test-support';
import { FollowerLink } from './follower-link.ts';
import { newNonce, noChannel, proofOf } from '../link/link-proof.ts';
import { LeadingServer } from '../testing/leading-server.ts';
import { systemRandom } from '../../random/system-random.ts';
import { systemClock } from '../../time/system-clock.ts';

let server: LeadingServer | undefined;
afterEach(() => server?.close());

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A follower's stream as the transport provides it. The test decides when the follower reads the leader's messages. */
class FollowersCall implements DuplexCall {
  readonly path = '/tenure.peer.v1.Peer/Link';
  readonly metadata = {};
  readonly deadlineMs = Infinity;
  readonly signal: AbortSignal = new AbortController().signal;
  readonly connection = testConnection();
  readonly maxReceiveBytes = 2_000_000;
  readonly bufferedBytes = 0;
  onMessage: (message: Buffer) => void = () => {};
  onHalfClose: () => void = () => {};
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  readonly said: peerpb.FromLeader[] = [];
  status: GrpcStatus | undefined;
  isPaused = false;
  isRead = true;
  isTrusted = false;

  say(message: MessageInitShape<typeof peerpb.ToLeaderSchema>): void {
    this.onMessage(Buffer.from(toBinary(peerpb.ToLeaderSchema, create(peerpb.ToLeaderSchema, message))));
  }

  send(framed: Buffer): boolean {
    this.said.push(fromBinary(peerpb.FromLeaderSchema, framed.subarray(frameHeadroomBytes)));
    return this.isRead;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  trustPeer(): void {
    this.isTrusted = true;
  }

  end(status: GrpcStatus): void {
    this.status = status;
  }
}

test('the leader stops reading from a follower that sends requests and reads no replies, until it reads', async () => {
  server = await LeadingServer.start([2n]);
  const { replica, leader } = server;
  const call = new FollowersCall();
  const link = new FollowerLink(call, {
    clock: systemClock,
    random: systemRandom,
    replica,
    leaderId: leader,
    renew: () => 5_000,
    answer: () => Buffer.alloc(5),
    check: () => undefined,
    onGreeted: () => undefined,
    admit: () => undefined,
    onWelcome: () => undefined,
    view: () => ({ index: 0, silent: [] }),
  });
  const { clusterId, epoch, secret } = replica.state;
  const [memberId, run, followerNonce] = [2n, '5', newNonce(systemRandom)];
  call.say({ hello: { memberId, run, epoch: BigInt(epoch), nonce: followerNonce } });
  const leaderNonce = call.said[0]?.challenge?.nonce ?? followerNonce;
  const said = {
    clusterId,
    epoch: BigInt(epoch),
    leader,
    memberId,
    run,
    followerNonce,
    leaderNonce,
    channel: noChannel,
  };
  call.say({ proof: { mac: proofOf('follower', secret, said) } });
  expect({ welcome: link.welcome, isTrusted: call.isTrusted }).toEqual({ welcome: true, isTrusted: true });

  call.isRead = false;
  const ids = Array.from({ length: 1_000 }, (_, id) => BigInt(id + 1));
  let asked = 0;
  while (!call.isPaused && asked < 100) {
    call.say({ renewals: [{ ids }] });
    asked += 1;
    await turn();
  }
  expect(call.isPaused).toBe(true);
  expect(asked).toBeLessThan(70);

  call.isRead = true;
  call.onDrain();
  await turn();
  expect(call.said.flatMap(({ renewed }) => renewed)).toHaveLength(asked * ids.length);
  expect(call.isPaused).toBe(false);
  expect(call.status).toBeUndefined();
});
