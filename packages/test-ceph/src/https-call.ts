import { type RequestOptions, request } from 'node:https'

export interface Answer {
  readonly status: number
  readonly text: string
}

/** One request on a connection of its own. An error of the connection rejects. */
export const httpsCall = (options: RequestOptions, body?: string): Promise<Answer> =>
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
