// Runs in its own thread, so that the test itself cannot delay a renewal: renews one lease continuously on one stream,
// each time after the previous renewal was answered, and reports the longest wait on request. The time that this thread
// or the server has waited for a processor, as Linux counts it, is the machine's and is subtracted.
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { parentPort, workerData } from 'node:worker_threads';

const { address, renewal, pauseMs, serverPid } = workerData;
const nsPerMs = 1_000_000;
const session = connect(`http://${address}`);
const stream = session.request(
  {
    ':method': 'POST',
    ':path': '/etcdserverpb.Lease/LeaseKeepAlive',
    'content-type': 'application/grpc',
    te: 'trailers',
  },
  { endStream: false },
);
let sentAtMs = 0;
let waitedBeforeMs = 0;
let answered = 0;
let longestMs = 0;
let asked = false;

function waitedMs(path) {
  try {
    return Number(readFileSync(path, 'utf8').split(' ')[1]) / nsPerMs;
  } catch {
    // The server has ended, or the system does not count.
    return 0;
  }
}

function allWaitedMs() {
  return waitedMs('/proc/thread-self/schedstat') + waitedMs(`/proc/${serverPid}/schedstat`);
}

function renew() {
  waitedBeforeMs = allWaitedMs();
  sentAtMs = performance.now();
  stream.write(renewal);
}

stream.on('data', () => {
  const delayMs = performance.now() - sentAtMs;
  longestMs = Math.max(longestMs, delayMs - (allWaitedMs() - waitedBeforeMs));
  answered += 1;
  if (asked) tell();
  setTimeout(renew, pauseMs);
});
stream.on('close', () => parentPort.postMessage(undefined));
// Reported when the renewal in flight has been answered, since it counts too.
parentPort.on('message', () => (asked = true));
renew();

function tell() {
  parentPort.postMessage({ longestMs, answered });
  longestMs = 0;
  answered = 0;
  asked = false;
}
