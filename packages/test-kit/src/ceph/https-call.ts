import { type RequestOptions, request } from 'node:https'

export interface HttpsResponse {
  readonly status: number
  readonly text: string
}

/** Sends one request on a new connection. Rejects on connection errors. */
export const httpsCall = (options: RequestOptions, body?: string): Promise<HttpsResponse> =>
  new Promise((resolve, reject) => {
    const sent = request({ ...options, agent: false }, answer => {
      let text = ''
      answer
        .setEncoding('utf8')
        .on('data', part => {
          text += part
        })
        .on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.on('error', reject).end(body)
  })
