/** The first message of TLS, as far as it has arrived. 'other': this is no TLS. 'tooLong': more than is ever needed. */
export type ClientHelloState = 'partial' | 'complete' | 'other' | 'tooLong';

/** Those of browsers and gRPC clients have up to about 2000 bytes, keys that resist quantum computers included. */
const maxClientHelloBytes = 8 * 1024;

const recordHeadBytes = 5;
const messageHeadBytes = 4;
const handshakeRecord = 22;
const clientHelloMessage = 1;

/**
 * Whether a whole ClientHello has arrived: a handshake is not begun before, so that it is known what it costs and when.
 * It must be in one record, as all clients send it.
 */
export function clientHelloState(read: Buffer): ClientHelloState {
  if (read.length > 0 && read[0] !== handshakeRecord) return 'other';
  // Every version of TLS has 3 here.
  if (read.length > 1 && read[1] !== 3) return 'other';
  if (read.length < recordHeadBytes + messageHeadBytes) return 'partial';
  if (read[recordHeadBytes] !== clientHelloMessage) return 'other';
  const recordBytes = read.readUInt16BE(3);
  const messageBytes = read.readUIntBE(recordHeadBytes + 1, 3);
  if (recordBytes > maxClientHelloBytes || messageHeadBytes + messageBytes > recordBytes) return 'tooLong';
  return read.length < recordHeadBytes + recordBytes ? 'partial' : 'complete';
}
