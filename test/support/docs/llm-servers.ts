import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RlsClient } from '../grpc/rls-client.js';
import { descriptor } from '../policy/decider.js';
import { closeLater } from '../process/close-later.js';
import { startWeir, type WeirServer } from '../weir/weir.js';

/** An upstream that reports the use of a request, and a weir with the policy of a page, for its domain `llm`. */
export class LlmServers {
  readonly weirPort: number;
  readonly upstreamPort: number;
  readonly #rls: RlsClient;

  private constructor(upstream: Server, weir: WeirServer) {
    this.#rls = new RlsClient(weir.grpcPort);
    this.weirPort = weir.grpcPort;
    this.upstreamPort = (upstream.address() as AddressInfo).port;
  }

  static async start(policy: string, answer: RequestListener): Promise<LlmServers> {
    const weir = await startWeir({ policy });
    const upstream = createServer(answer);
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    closeLater(upstream, () => {
      upstream.closeAllConnections();
      upstream.close();
    });
    return new LlmServers(upstream, weir);
  }

  /** Returns the remaining tokens of a tenant. */
  async leftOf(tenant: string): Promise<number | undefined> {
    const { response } = await this.#rls.ask('llm', [descriptor([`tenant=${tenant}`], { hitsAddend: 0 })]);
    return response?.statuses[0]?.limitRemaining;
  }
}
