import postgres from 'postgres'
import { expect, test } from 'vitest'
import {
  isConnectionRejected,
  isDatabaseReadOnly,
  isDatabaseUnavailable,
  isNotExecuted,
  isStatementRejected,
  mayStillExecute,
  NO_WRITABLE_SERVER,
  NotWrittenError,
  toConnectionError,
} from './errors.ts'
import { TimeoutError } from './time.ts'

const serverError = (code: string) => Object.assign(new postgres.PostgresError('example'), { code })
const systemError = (code: string) => Object.assign(new Error('example'), { code })
const notConnected = (code: string) => toConnectionError(systemError(code), { hadSession: false })
const lost = (code: string) => toConnectionError(systemError(code), { hadSession: true })

test.each([
  ['08006', 'connection failure'],
  ['28P01', 'invalid password'],
  ['3D000', 'unknown database'],
  ['53100', 'disk full'],
  ['53300', 'too many connections'],
  ['57014', 'statement cancelled'],
  ['57P01', 'session terminated by an administrator'],
  ['57P03', 'server starting up'],
  ['58030', 'I/O error'],
  ['25006', 'read-only transaction on a standby'],
  ['40001', 'serialization failure'],
  ['40P01', 'deadlock'],
  ['55P03', 'lock not available'],
  ['25P04', 'timeout of a transaction'],
  ['42501', 'missing privilege'],
  ['3F000', 'unknown schema'],
  ['42P01', 'unknown table'],
])('SQLSTATE %s (%s): the database is unavailable and the statement is not rejected', code => {
  expect(isDatabaseUnavailable(serverError(code))).toBe(true)
  expect(isStatementRejected(serverError(code))).toBe(false)
  expect(isConnectionRejected(serverError(code))).toBe(/^(?:28|3D)/.test(code))
})

test.each([
  ['22P05', 'untranslatable character'],
  ['23505', 'unique violation'],
  ['23514', 'check violation'],
  ['42601', 'syntax error'],
  ['XX000', 'internal error of the server'],
])('SQLSTATE %s (%s): the statement is rejected and the database is available', code => {
  expect(isDatabaseUnavailable(serverError(code))).toBe(false)
  expect(isStatementRejected(serverError(code))).toBe(true)
  expect(isConnectionRejected(serverError(code))).toBe(false)
})

test.each(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECTION_ENDED'])(
  '%s of the driver: the database is unreachable',
  code => {
    expect(isDatabaseUnavailable(systemError(code))).toBe(true)
    expect(isStatementRejected(systemError(code))).toBe(false)
  },
)

// Of a name, a TCP or Unix socket, TLS and the server; any other code would do.
test.each(['ENOTFOUND', 'ECONNREFUSED', 'ENOENT', 'EACCES', 'ENOTSOCK', 'ERR_SSL_WRONG_VERSION_NUMBER', 'EXAMPLE'])(
  '%s of a connection: unreachable, whatever the code; before the session, the statement had no effect',
  code => {
    for (const error of [notConnected(code), lost(code)]) {
      expect(isDatabaseUnavailable(error)).toBe(true)
      expect(isStatementRejected(error)).toBe(false)
    }
    expect([isNotExecuted(notConnected(code)), isNotExecuted(lost(code))]).toEqual([true, false])
    expect([mayStillExecute(notConnected(code)), mayStillExecute(lost(code))]).toEqual([false, true])
  },
)

test('a server that rejects the session with any error is unavailable, and no statement was sent', () => {
  const rejected = toConnectionError(serverError('55000'), { hadSession: false })
  expect([isDatabaseUnavailable(rejected), isNotExecuted(rejected), isStatementRejected(rejected)]).toEqual([
    true,
    true,
    false,
  ])
})

test('a timeout: the database is unavailable', () => {
  expect(isDatabaseUnavailable(new TimeoutError('no answer'))).toBe(true)
})

test.each([
  new Error('without a code'),
  systemError('EACCES'),
  systemError('ECONNREFUSED'),
  systemError('UNDEFINED_VALUE'),
  Object.assign(new Error('example'), { code: 57_014 }),
  { code: '57P01' },
  '57P01',
  undefined,
])('any other error is a defect: %s', error => {
  expect(isDatabaseUnavailable(error)).toBe(false)
  expect(isStatementRejected(error)).toBe(false)
})

test.each([
  ['a read-only transaction', serverError('25006'), true],
  ['a full disk', serverError('53100'), true],
  ['a closed standby', Object.assign(serverError('57P03'), { detail: 'Hot standby mode is disabled.' }), true],
  ['a server that starts', serverError('57P03'), false],
  ['a server that recovers from a crash', Object.assign(serverError('57P03'), { detail: 'example' }), false],
  ['no writable server among several', systemError(NO_WRITABLE_SERVER), true],
  ['too many connections', serverError('53300'), false],
  ['a refused connection', notConnected('ECONNREFUSED'), false],
  ['a timeout', new TimeoutError('no answer'), false],
])('%s: the database accepts no writes, or it does not respond', (_, error, isReadOnly) => {
  expect(isDatabaseReadOnly(error)).toBe(isReadOnly)
  expect(isDatabaseUnavailable(error)).toBe(true)
})

test.each([
  '28P01',
  '3D000',
  '3F000',
  '42501',
  '42P01',
  '42703',
  '42883',
  '40001',
  '40P01',
  '53100',
  '53300',
  '55P03',
  '57P03',
  '57PD1',
  '57PD2',
])('SQLSTATE %s: the statement had no effect', code => expect(isNotExecuted(serverError(code))).toBe(true))

test.each([
  serverError('08006'),
  serverError('57014'),
  serverError('57P01'),
  serverError('58030'),
  systemError('CONNECTION_CLOSED'),
  lost('ECONNRESET'),
  lost('EPIPE'),
  lost('ETIMEDOUT'),
  new TimeoutError('example'),
  new Error('example'),
])('%s %#: the effect of the statement is unknown', error => expect(isNotExecuted(error)).toBe(false))

test('a write that had no effect can be tried again later', () => {
  expect(isDatabaseUnavailable(new NotWrittenError('example'))).toBe(true)
})

test.each<[unknown, boolean]>([
  [lost('ECONNRESET'), true],
  [lost('ETIMEDOUT'), true],
  [systemError('CONNECTION_CLOSED'), true],
  [new TimeoutError('late'), true],
  // A pooler reports the loss of its connection to the server with this class.
  [serverError('08006'), true],
  [serverError('57P01'), false],
  [serverError('25006'), false],
  [serverError('55P03'), false],
  [serverError('23505'), false],
  [notConnected('ECONNREFUSED'), false],
  [systemError(NO_WRITABLE_SERVER), false],
  [new NotWrittenError('the row is locked'), false],
  [new TypeError('a defect'), false],
])('%o: the statement may still execute: %s', (error, expected) => {
  expect(mayStillExecute(error)).toBe(expected)
})
