import { afterEach, expect, test, vi } from 'vitest'
import { forwardLogLine } from './forward-logs.ts'

const own: string[] = []
const spy = vi.spyOn(console, 'log').mockImplementation(line => void own.push(String(line)))
afterEach(() => {
  own.length = 0
})

const TOKEN = 'token-0123456789'
const passed = (message: string, level: string, LOG_LEVEL: string): { said: string[]; own: unknown[] } => {
  const said: string[] = []
  forwardLogLine({ LOG_LEVEL, BEARER_TOKENS_CSV: TOKEN }, message, level, line => said.push(line))
  return { said, own: own.map(line => JSON.parse(line)) }
}

test("the worker's own lines stay as they are", () => {
  expect(passed('{"msg":"answered"}', 'log', 'error')).toEqual({ said: ['{"msg":"answered"}'], own: [] })
  expect(spy).not.toHaveBeenCalled()
})

test.each([
  ['error', 'error', true],
  ['warn', 'error', false],
  ['warn', 'info', true],
  ['info', 'info', false],
  ['info', 'debug', true],
])('words of workerd at %s are an object at LOG_LEVEL=%s: %s', (level, logLevel, isLogged) => {
  const { said, own: lines } = passed(`server.c++:1: fatal\n  of ${TOKEN}`, level, logLevel)
  expect(said).toEqual([])
  const line = { service: 'lease-witness', msg: 'workerd', text: 'server.c++:1: fatal\n  of <redacted>' }
  expect(lines).toEqual(isLogged ? [expect.objectContaining(line)] : [])
})

test('what only begins like an object is none', () => {
  expect(passed('{oops', 'error', 'error').own).toMatchObject([{ text: '{oops' }])
})
