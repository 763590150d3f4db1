import type * as Grpc from '@grpc/grpc-js';

type Connector = ReturnType<Grpc.ChannelCredentials['_createSecureConnector']>;

/**
 * Unreferences the sockets that these credentials connect. grpc-js keeps a process alive while any call is open, also
 * an idle watch or renewal stream, and has no option against that; our client decides it per call (ProcessRef). The
 * credentials' connector is the only place where grpc-js hands out its sockets.
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
