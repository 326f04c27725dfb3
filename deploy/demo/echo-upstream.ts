import { createServer, type Server } from 'node:http';

/**
 * Starts an upstream that answers each request with 200 and its method, path and headers as JSON. `port` 0 means any
 * free port. Also a program, for docker compose: `node echo-upstream.ts <port> <host>`.
 */
export function startEchoUpstream(
  port: number,
  host = '127.0.0.1',
): Promise<{ server: Server; port: number }> {
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    response.setHeader('content-type', 'application/json');
    response.end(`${JSON.stringify({ method, path: url, headers })}\n`);
  });
  // Never close idle connections. Otherwise, Envoy may use a connection while Node.js closes it after five seconds, and
  // respond with 503.
  server.keepAliveTimeout = 0;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      resolve({ server, port: typeof address === 'object' && address !== null ? address.port : port });
    });
  });
}

// True if the file runs as a program. It also runs uncompiled, as an ES module, where `require.main` does not exist.
if (/echo-upstream\.[jt]s$/.test(process.argv[1] ?? '')) {
  startEchoUpstream(Number(process.argv[2] ?? 9090), process.argv[3]).then(
    ({ port }) => console.log(`echo upstream on port ${port}`),
    (error: Error) => {
      console.error(error.message);
      process.exitCode = 1;
    },
  );
}
