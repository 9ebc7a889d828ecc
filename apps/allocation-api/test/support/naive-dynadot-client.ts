import { setTimeout as sleep } from 'node:timers/promises'

export interface NaiveClientOptions {
  readonly url: string
  readonly apiKey: string
  readonly domain: string
  /** Mean pause before a retry of a busy account, in milliseconds. */
  readonly pauseMs: number
}

interface DynadotRecord {
  readonly Subhost?: string
  readonly RecordType: string
  readonly Value: string
  readonly Value2?: string
}

interface DynadotResponse {
  readonly Status: string
  readonly GetDns?: {
    readonly NameServerSettings: {
      readonly MainDomains?: readonly DynadotRecord[]
      readonly SubDomains?: readonly DynadotRecord[]
      readonly TTL?: string
    }
  }
}

/**
 * The baseline client: reads the record set, adds a record and writes the whole set back. It retries the call when the
 * account is busy. A retry that starts with the read again would lose fewer records, but only while no client needs more
 * time between read and write than one call takes.
 */
export const createNaiveClient = ({ url, apiKey, domain, pauseMs }: NaiveClientOptions) => {
  const call = async (command: string, parameters: Record<string, string> = {}) => {
    const query = new URLSearchParams({ key: apiKey, command, domain, ...parameters })
    for (;;) {
      const [response] = Object.values(
        (await (await fetch(`${url}?${query}`)).json()) as Record<string, DynadotResponse>,
      )
      if (response?.Status === 'success') return response
      if (response?.Status !== 'system_busy') throw new Error(`${command}: ${JSON.stringify(response)}`)
      await sleep(2 * pauseMs * Math.random())
    }
  }

  const toParameters = (place: 'main' | 'sub', records: readonly DynadotRecord[]): Record<string, string> =>
    Object.fromEntries(
      records.flatMap(({ Subhost, RecordType, Value, Value2 }, i) => [
        ...(Subhost === undefined ? [] : [[`subdomain${i}`, Subhost]]),
        [`${place}_record_type${i}`, RecordType.toLowerCase()],
        [`${place}_record${i}`, Value],
        ...(Value2 === undefined ? [] : [[`${place}_recordx${i}`, Value2]]),
      ]),
    )

  return async (host: string, address: string): Promise<void> => {
    const { MainDomains = [], SubDomains = [], TTL = '' } = (await call('get_dns')).GetDns?.NameServerSettings ?? {}
    await call('set_dns2', {
      ...toParameters('main', MainDomains),
      ...toParameters('sub', [...SubDomains, { Subhost: host, RecordType: 'A', Value: address }]),
      ttl: TTL,
    })
  }
}
