// A process that answers every gRPC request with the same small reply: started with the port to listen on.
import { createServer } from 'node:http2';
import { MessageWriter } from '../wire/protobuf.ts';
import { frame } from '../wire/grpc-frames.ts';

const header = new MessageWriter().varint(1, 1).varint(2, 1).varint(3, 1).varint(4, 1).finish();
const reply = frame(new MessageWriter().bytes(1, header).finish());

const server = createServer();
server.on('stream', (stream) => {
  stream.on('data', () => {});
  stream.on('error', () => {});
  stream.on('end', () => {
    if (stream.destroyed || stream.closed) return;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(reply);
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
