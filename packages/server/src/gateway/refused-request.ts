import type { OutgoingHttpHeaders } from 'node:http';
import type { HttpStream } from '@tenure/grpc-server';

/** So much of the body of a refused request is dropped before the answer: a client that still sends may not read. */
export const maxDroppedBytes = 256 * 1024;

export interface Refusal {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

/** Answers a request that reaches no method. */
export function refuseRequest(stream: HttpStream, { status, headers, body }: Refusal): void {
  const beganAt = stream.connection.sweeps;
  let droppedBytes = 0;
  let isAnswered = false;
  const answer = (): void => {
    if (isAnswered) return;
    isAnswered = true;
    const bytes = Buffer.from(body);
    stream.respond(status, { ...headers, 'content-length': bytes.length });
    if (bytes.length === 0 || stream.request.method === 'HEAD') stream.end();
    else stream.end(bytes);
  };
  stream.onData = (chunk) => {
    droppedBytes += chunk.length;
    if (droppedBytes > maxDroppedBytes) answer();
  };
  stream.onEnd = answer;
  stream.onSweep = () => {
    const { limits, sweeps } = stream.connection;
    if ((sweeps - beganAt) * limits.sweepIntervalMs > limits.requestTimeoutMs) stream.destroy();
  };
}
