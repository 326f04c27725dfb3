import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A real HTTP server with a table of plans. Tests replace `answer` to let it lie. */
export class TableServer {
  /** Requests in their order. */
  readonly requests: IncomingMessage[] = [];
  /** The table, and its ETag; '' for none. */
  table = '';
  etag = '';
  /** Number of 304 answers. */
  unchanged = 0;
  answer: (request: IncomingMessage, response: ServerResponse) => void = (request, response) =>
    this.honest(request, response);
  private readonly server: Server;

  private constructor() {
    this.server = createServer((request, response) => {
      this.requests.push(request);
      this.answer(request, response);
    });
  }

  static async start(table = ''): Promise<TableServer> {
    const server = new TableServer();
    server.table = table;
    await new Promise<void>((resolve) => server.server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Answers as a correct server. */
  honest(request: IncomingMessage, response: ServerResponse): void {
    if (this.etag !== '' && request.headers['if-none-match'] === this.etag) {
      this.unchanged++;
      response.writeHead(304).end();
      return;
    }
    response.writeHead(200, this.etag === '' ? {} : { etag: this.etag }).end(this.table);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
