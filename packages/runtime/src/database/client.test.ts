import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { createSessions, drainRows, type SessionSocket } from './client.ts'

/** Sessions with a clock that the test sets, and sockets that record the events of the sessions. */
const setUp = () => {
  const clock = { ms: 0 }
  const sessions = createSessions(() => clock.ms)
  const closed: string[] = []
  const open = (name: string) => {
    const socket = new EventEmitter()
    for (const event of ['expire', 'distrust']) socket.on(event, () => closed.push(`${event} ${name}`))
    sessions.add(socket as SessionSocket)
    return socket
  }
  return { clock, sessions, closed, open }
}

test('a session that reports a read-only database replaces those that are older than a second', () => {
  const { clock, closed, open } = setUp()
  const first = open('first')
  clock.ms = 1_000
  open('second')
  first.emit('sqlstate', '25006')
  expect(closed).toEqual(['expire first'])
})

test('after a silence, the sessions that have received nothing since its write are distrusted', () => {
  const { clock, closed, open } = setUp()
  const [silent, , active] = [open('silent'), open('idle'), open('active')]
  open('ended').emit('close')
  clock.ms = 100
  const since = clock.ms
  clock.ms = 150
  active.emit('data')
  open('new')
  clock.ms = 200
  silent.emit('silent', since)
  expect(closed).toEqual(['distrust silent', 'distrust idle'])
})

test('returns the rows in order and empties the result', () => {
  const result = [{ n: 1 }, { n: 2 }]
  expect(drainRows(result)).toEqual([{ n: 1 }, { n: 2 }])
  expect(result).toEqual([])
})
