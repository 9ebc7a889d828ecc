import { rejectOtherTypes, rejectUnknown, startHostWith } from './host-client.ts'
import { createTestService, type TestService } from './test-service.ts'

export interface StartAllocationApiOptions {
  /** The domains in which the API allocates names. Default: `pool.test`. */
  readonly pools?: readonly string[]
  /** Further variables of the API, such as PDM_RESERVATION_TTL or PDM_NAME_COOL_OFF. */
  readonly env?: Readonly<Record<string, string>>
}

export interface TestAllocationApi extends TestService {
  /** The operator's listener, in the form of `url`. The faults apply to it as well. */
  readonly operatorUrl: string
  /** Send it to the operator's listener as `Authorization: Bearer TOKEN`. */
  readonly operatorToken: string
  /** `127.0.0.1:PORT` of the authoritative DNS server with the records of the pools, UDP and TCP. Empty with another provider in `env`. */
  readonly dnsServer: string
  /** The database of the API, as its owner. It is for looking, and for nothing that the API itself does. */
  readonly databaseUrl: string
}

/**
 * Starts an allocation API without names, on a Postgres server of its own, with a DNS server for its pools.
 *
 * @throws {TestServiceError} if it does not start; the message says why.
 */
export const startAllocationApi = async (options: StartAllocationApiOptions = {}): Promise<TestAllocationApi> => {
  rejectUnknown('startAllocationApi', options, ['pools', 'env'])
  const { pools = ['pool.test'], env = {} } = options
  rejectOtherTypes({ pools }, env)
  const { host, address } = await startHostWith({ kind: 'allocation-api', pools, env })
  const { operatorUrl = '', operatorToken = '', dnsServer = '', databaseUrl = '' } = address
  return { ...createTestService(address.url, host), operatorUrl, operatorToken, dnsServer, databaseUrl }
}
