import type { Answer } from '../load/answer.ts'
import type { Request } from '../load/connection.ts'
import { oneOf, type Task } from '../load/subject.ts'
import type { Reservation } from './reservations.ts'
import { POOL } from './standard.ts'

const ADDRESS = '203.0.113.10'

const post = (verb: string, body: object): Request => ({
  method: 'POST',
  path: `/api/v1/pool/${POOL}/${verb}`,
  body: JSON.stringify(body),
})

const answered = oneOf(200)
/** To the empty route, whose answer is a constant. */
export const toEmptyRoute = (task: Task): Task => ({ ...task, faultOf: answered })
const created = oneOf(201)
/** 202: the records are not out yet, and will be. */
const accepted = oneOf(200, 202)

/** `taken`: the state that the answer has to tell; absent: it must be free. */
export const checkTask = (subdomain: string, taken?: 'reserved' | 'active'): Task => ({
  request: { method: 'GET', path: `/api/v1/pool/${POOL}/check?sub=${subdomain}` },
  faultOf: answer =>
    answered(answer) ??
    (answer.body.startsWith(`{"available":${!taken},`) && (!taken || answer.body.includes(`"${taken}-state"`))
      ? null
      : `not as it should be: ${answer.body.slice(0, 120)}`),
})

export const reserveTask = (subdomain: string, onGranted?: (token: string) => void): Task => ({
  request: post('reserve', { subdomain, createdBy: 'bench' }),
  faultOf(answer: Answer) {
    const token = onGranted && /"reservationToken":"([^"]+)"/.exec(answer.body)?.[1]
    if (token) onGranted(token)
    return created(answer)
  },
})

export const commitTask = ({ subdomain, reservationToken }: Reservation): Task => ({
  request: post('commit', {
    subdomain,
    reservationToken,
    sovereignFQDN: `${subdomain}.${POOL}`,
    loadBalancerIP: ADDRESS,
  }),
  faultOf: accepted,
})

export const releaseTask = (subdomain: string): Task => ({
  request: { ...post('release', { subdomain }), method: 'DELETE' },
  faultOf: accepted,
})
