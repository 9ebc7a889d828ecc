import { setTimeout as sleep } from 'node:timers/promises'

export interface NaiveClientOptions {
  readonly url: string
  readonly apiKey: string
  readonly domain: string
  /** Milliseconds, on the average, before a busy account is asked again. */
  readonly pauseMs: number
}

interface Listed {
  readonly Subhost?: string
  readonly RecordType: string
  readonly Value: string
  readonly Value2?: string
}

interface Answer {
  readonly Status: string
  readonly GetDns?: {
    readonly NameServerSettings: {
      readonly MainDomains?: readonly Listed[]
      readonly SubDomains?: readonly Listed[]
      readonly TTL?: string
    }
  }
}

/**
 * What the API suggests, plainly written: read the set, add one's record, send the whole set back; a call that finds
 * the account busy is made again. To begin again with the read instead would help here, and only for as long as nobody
 * needs more time between read and write than a call takes: the account's taking turns is then as good as a lock.
 */
export const createNaiveClient = ({ url, apiKey, domain, pauseMs }: NaiveClientOptions) => {
  const call = async (command: string, parameters: Record<string, string> = {}) => {
    const query = new URLSearchParams({ key: apiKey, command, domain, ...parameters })
    for (;;) {
      const [answer] = Object.values((await (await fetch(`${url}?${query}`)).json()) as Record<string, Answer>)
      if (answer?.Status === 'success') return answer
      if (answer?.Status !== 'system_busy') throw new Error(`${command}: ${JSON.stringify(answer)}`)
      await sleep(2 * pauseMs * Math.random())
    }
  }

  const parametersOf = (place: 'main' | 'sub', records: readonly Listed[]): Record<string, string> =>
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
      ...parametersOf('main', MainDomains),
      ...parametersOf('sub', [...SubDomains, { Subhost: host, RecordType: 'A', Value: address }]),
      ttl: TTL,
    })
  }
}
