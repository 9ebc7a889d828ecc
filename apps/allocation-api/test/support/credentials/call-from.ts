import { request } from 'node:http'
import { expectContract, type ObservedResponse } from '../validate.ts'

export interface ValidationResponse extends ObservedResponse {
  readonly body: {
    readonly valid: boolean
    readonly message: string
    readonly error?: string
    readonly detail?: string
  }
  readonly ms: number
}

/** Posts from an address of this machine, which has all of 127.0.0.0/8. The response is validated against the contract. */
export const callFrom = async (
  localAddress: string,
  base: string,
  path: string,
  body: unknown,
): Promise<ValidationResponse> => {
  const started = performance.now()
  const { promise, resolve, reject } = Promise.withResolvers<ValidationResponse>()
  request(base + path, { method: 'POST', localAddress, agent: false }, async response => {
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    const headers = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
    const answer = { status: response.statusCode ?? 0, headers, text }
    resolve({ ...answer, body: JSON.parse(text), ms: performance.now() - started })
  })
    .on('error', reject)
    .end(typeof body === 'string' ? body : JSON.stringify(body))
  const answer = await promise
  expectContract('POST', path, answer)
  return answer
}
