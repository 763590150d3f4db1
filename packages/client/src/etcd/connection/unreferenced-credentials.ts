import type * as Grpc from '@grpc/grpc-js';

type Connector = ReturnType<Grpc.ChannelCredentials['_createSecureConnector']>;

/**
 * The same credentials, whose connections keep no process alive. grpc-js holds a process for as long as any call is
 * open, a watch or a stream of renewals too; here whoever makes a call says whether it does. There is no option for
 * it, but credentials are given each socket: a version of grpc-js that did not would keep processes alive as before.
 */
export function unreferenced(credentials: Grpc.ChannelCredentials): Grpc.ChannelCredentials {
  const create = credentials._createSecureConnector.bind(credentials);
  credentials._createSecureConnector = (...given): Connector => {
    const connector = create(...given);
    const connect = connector.connect.bind(connector);
    connector.connect = async (socket) => {
      const connected = await connect(socket);
      for (const one of [socket, connected.socket]) {
        one.unref();
        // The session would do so at each call.
        one.ref = () => one;
      }
      return connected;
    };
    return connector;
  };
  return credentials;
}
