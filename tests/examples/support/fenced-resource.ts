import { createServer } from 'node:http'
import { listenOnLoopback } from '@pool/dev/ports'

/** A leader, as the resource sees it. */
export interface Leader {
  readonly region: string
  readonly token: number
}

export interface Overlap {
  /** The leader that had not stood down. */
  readonly earlier: Leader
  readonly later: Leader
}

/**
 * The resource of the example controllers, and the outside observer of their election. A region becomes the primary one with
 * PUT and stands down with DELETE, both with its fencing token. A token lower than the highest one is rejected with 409.
 */
export interface FencedResource extends AsyncDisposable {
  readonly url: string
  /** The leader that has neither stood down nor was ended. */
  readonly leader: Leader | undefined
  /** The highest token. */
  readonly highestToken: number
  readonly tenureCount: number
  readonly overlaps: readonly Overlap[]
  /** Requests of leaders that were too late. */
  readonly rejectedCount: number
  /** Call it in the moment before a leader is killed or suspended: then it can no longer stand down. */
  end(leader: Leader): void
}

export const startFencedResource = async (): Promise<FencedResource> => {
  let leader: Leader | undefined
  /** The lowest token that is accepted. */
  let floor = 0
  let highestToken = 0
  let tenureCount = 0
  let rejectedCount = 0
  const overlaps: Overlap[] = []

  const decide = (method: string | undefined, { region, token }: Leader): number => {
    if (!Number.isSafeInteger(token)) return 400
    if (token < floor) {
      rejectedCount += 1
      return 409
    }
    floor = method === 'DELETE' ? token + 1 : token
    if (method === 'DELETE') {
      if (leader?.token === token) leader = undefined
    } else if (token > highestToken) {
      if (leader) overlaps.push({ earlier: leader, later: { region, token } })
      leader = { region, token }
      highestToken = token
      tenureCount += 1
    }
    return 204
  }

  const server = createServer(async (request, response) => {
    let region = ''
    for await (const chunk of request.setEncoding('utf8')) region += chunk
    response.writeHead(decide(request.method, { region, token: Number(request.headers['x-fencing-token']) })).end()
  })
  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}/primary`,
    get leader() {
      return leader
    },
    get highestToken() {
      return highestToken
    },
    get tenureCount() {
      return tenureCount
    },
    get rejectedCount() {
      return rejectedCount
    },
    overlaps,
    end: ({ token }) => {
      if (leader?.token === token) leader = undefined
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
