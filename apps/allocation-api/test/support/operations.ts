import type { Api, ApiResponse } from '@pool/test-kit/services.ts'

export const pool = 'pool.test'

type Headers = Record<string, string>

export const reserve = (api: Api, subdomain: string, headers?: Headers): Promise<ApiResponse> =>
  api.call('POST', `/api/v1/pool/${pool}/reserve`, { subdomain }, headers)

export const commit = (
  api: Api,
  subdomain: string,
  reservationToken: string,
  loadBalancerIP = '192.0.2.1',
  headers?: Headers,
): Promise<ApiResponse> =>
  api.call(
    'POST',
    `/api/v1/pool/${pool}/commit`,
    { subdomain, reservationToken, sovereignFQDN: `${subdomain}.${pool}`, loadBalancerIP },
    headers,
  )

export const renew = (api: Api, subdomain: string, reservationToken: string): Promise<ApiResponse> =>
  api.call('POST', `/api/v1/pool/${pool}/renew`, { subdomain, reservationToken })

export const release = (api: Api, subdomain: string, headers?: Headers): Promise<ApiResponse> =>
  api.call('DELETE', `/api/v1/pool/${pool}/release`, { subdomain }, headers)

export const check = (api: Api, subdomain: string): Promise<ApiResponse> =>
  api.call('GET', `/api/v1/pool/${pool}/check?sub=${subdomain}`)

/** Reserves a name and returns its token. Throws unless the status is 201. */
export const reserveToken = async (api: Api, subdomain: string): Promise<string> => {
  const response = await reserve(api, subdomain)
  if (response.status !== 201) throw new Error(`reserve ${subdomain}: ${response.status} ${response.text}`)
  return response.body.reservationToken
}

/** The number of responses per status. */
export const countStatuses = (responses: readonly ApiResponse[]): Record<number, number> => {
  const counts: Record<number, number> = {}
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
