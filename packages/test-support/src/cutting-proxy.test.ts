import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CuttingProxy } from './cutting-proxy.ts';

let echo: Server;
let proxy: CuttingProxy;
const heard: string[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  heard.length = 0;
  echo = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      heard.push(bytes.toString());
      socket.write(bytes);
    });
  });
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  proxy = await CuttingProxy.before((echo.address() as AddressInfo).port);
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await proxy.close();
  await new Promise((resolve) => echo.close(resolve));
});

function open(): Socket {
  const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

async function asked(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}

test('forwards everything, and closes the connections on request', async () => {
  const socket = open();
  expect(await asked(socket, 'one')).toBe('one');
  proxy.cut();
  await once(socket, 'close');
  expect(await asked(open(), 'two')).toBe('two');
  expect(proxy.opened).toBe(2);
});

test('refuses new connections too, and recovers', async () => {
  proxy.goAway();
  await once(open(), 'close');
  proxy.comeBack();
  expect(await asked(open(), 'back')).toBe('back');
});

test('holds the data of a pause, also on a connection that began in it', async () => {
  const early = open();
  await asked(early, 'before');
  const resume = proxy.pause();
  const late = open();
  const answers = [asked(early, 'early'), asked(late, 'late')];
  // A connection around the proxy has its response: by then the two paused ones would have had theirs too.
  const around = connect((echo.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(around);
  await asked(around, 'around');
  expect(heard).toEqual(['before', 'around']);
  resume();
  expect(await Promise.all(answers)).toEqual(['early', 'late']);
});

test('withholds one response, after the server has processed the request', async () => {
  const socket = open();
  const cut = proxy.cutBeforeAnswerTo('append');
  expect(await asked(socket, 'read')).toBe('read');
  socket.write('append');
  await Promise.all([cut, once(socket, 'close')]);
  expect(heard).toEqual(['read', 'append']);
});

test('holds replies while requests get through', async () => {
  const socket = open();
  await asked(socket, 'one');
  proxy.holdReplies();
  const answers: string[] = [];
  socket.on('data', (bytes: Buffer) => answers.push(bytes.toString()));
  socket.write('two');
  await expect.poll(() => heard).toEqual(['one', 'two']);
  proxy.cut();
  await once(socket, 'close');
  expect(answers).toEqual([]);
});
