import { objectStorageRegions } from '@pool/contract'
import { explainNetworkFailure, type HttpsGet } from '../credentials/https-client.ts'

/** The regions that do not answer over HTTPS, and why: one text for each cause, without a secret. */
export const findUnreachableStorage = async (domain: string, get: HttpsGet): Promise<readonly string[]> => {
  const results = await Promise.all(
    objectStorageRegions.map(async region => {
      const url = new URL(`https://${region}.${domain}/`)
      // Not signed: any answer of a gateway shows that it can be reached.
      const response = await get(url, { Accept: 'application/xml' })
      if (response.kind === 'failed') return [{ host: url.host, cause: explainNetworkFailure(response.cause) }]
      return response.status >= 500 ? [{ host: url.host, cause: `it answers with status ${response.status}` }] : []
    }),
  )
  return [...Map.groupBy(results.flat(), ({ cause }) => cause)].map(
    ([cause, group]) => `request to ${group.map(({ host }) => host).join(', ')} failed: ${cause}`,
  )
}
