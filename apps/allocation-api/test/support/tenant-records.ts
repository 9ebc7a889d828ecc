import { Resolver } from 'node:dns/promises'
import { createContractCall, createSteps, poolPath, type TestService } from './service.ts'

export const OPERATOR_TOKEN = 'operator-token-of-records'
export const recordsEnv = {
  PDM_RECORDS: 'records',
  PDM_OPERATOR_TOKENS: OPERATOR_TOKEN,
  DNSPROVIDER_RECORD_NAMES: '@,*,console,api',
}

/** A value of a challenge: the SHA-256 of something. */
export const challenge = (letter: string): string => letter.repeat(43)

export const unknownRecordsToken = `pdr_${challenge('x')}`

/** What tests of tenants' records need of a service. */
export const createTenants = ({ api, call }: TestService) => {
  const { reserveName, reserveAndCommit } = createSteps(call)
  const operatorCall = createContractCall(api.operatorUrl ?? '')
  const mint = (subdomain: string, fields: object, headers?: Record<string, string>) =>
    call('POST', `${poolPath}/tokens`, { subdomain, ...fields }, headers)
  /** Sends a request with a records token. */
  const as =
    (token: string) =>
    (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      call(method, `/api/v1/records${path}`, body, { Authorization: `Bearer ${token}`, ...headers })
  /** An active name with a token. */
  const createTenant = async (subdomain: string, fields: object = {}) => {
    const { reservationToken } = await reserveAndCommit(subdomain)
    const mintAs = async (more: object): Promise<string> => {
      const { status, body, text } = await mint(subdomain, { reservationToken, scope: 'records', ...more })
      if (status !== 201) throw new Error(text)
      return body.token
    }
    const token = await mintAs(fields)
    return { reservationToken, token, mintAs, send: as(token) }
  }
  const release = (subdomain: string, reservationToken: string) =>
    call('DELETE', `${poolPath}/release`, { subdomain, reservationToken })
  const asOperator = (method: string, path: string, body?: unknown) =>
    operatorCall(method, path, body, { Authorization: `Bearer ${OPERATOR_TOKEN}` })
  const resolver = new Resolver({ timeout: 5_000 })
  resolver.setServers([`127.0.0.1:${api.dnsPort}`])
  /** What the zone has; [] without an answer. */
  const resolve = async (name: string, type: 'A' | 'TXT'): Promise<string[]> => {
    const answer = type === 'A' ? resolver.resolve4(name) : resolver.resolveTxt(name).then(texts => texts.flat())
    return (await answer.catch(() => [])).sort()
  }
  return { reserveName, createTenant, mint, as, release, operatorCall, asOperator, resolve }
}
