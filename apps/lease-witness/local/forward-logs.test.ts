import { afterEach, expect, test, vi } from 'vitest'
import { forwardLogLine } from './forward-logs.ts'

const logged: string[] = []
const spy = vi.spyOn(console, 'log').mockImplementation(line => void logged.push(String(line)))
afterEach(() => {
  logged.length = 0
})

const TOKEN = 'token-0123456789'
const forward = (message: string, level: string, LOG_LEVEL: string): { forwarded: string[]; logged: unknown[] } => {
  const forwarded: string[] = []
  forwardLogLine({ LOG_LEVEL, BEARER_TOKENS_CSV: TOKEN }, message, level, line => forwarded.push(line))
  return { forwarded, logged: logged.map(line => JSON.parse(line)) }
}

test("the worker's own lines are forwarded unchanged", () => {
  expect(forward('{"msg":"request"}', 'log', 'error')).toEqual({ forwarded: ['{"msg":"request"}'], logged: [] })
  expect(spy).not.toHaveBeenCalled()
})

test.each([
  ['error', 'error', true],
  ['warn', 'error', false],
  ['warn', 'info', true],
  ['info', 'info', false],
  ['info', 'debug', true],
])('a message of workerd at %s is logged as JSON at LOG_LEVEL=%s: %s', (level, logLevel, isLogged) => {
  const { forwarded, logged: lines } = forward(`server.c++:1: fatal\n  of ${TOKEN}`, level, logLevel)
  expect(forwarded).toEqual([])
  const line = { service: 'lease-witness', msg: 'workerd', text: 'server.c++:1: fatal\n  of <redacted>' }
  expect(lines).toEqual(isLogged ? [expect.objectContaining(line)] : [])
})

test('an invalid JSON object is a message of workerd', () => {
  expect(forward('{oops', 'error', 'error').logged).toMatchObject([{ text: '{oops' }])
})
