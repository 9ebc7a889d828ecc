import postgres from 'postgres'
import { expect, test } from 'vitest'
import { DatabaseTimeout, isDatabaseUnavailable, isRefusedConnection, isRefusedStatement } from './client.ts'

const said = (code: string) => Object.assign(new postgres.PostgresError('made up'), { code })
const failed = (code: string) => Object.assign(new Error('made up'), { code })

test.each([
  ['08006', 'the connection broke'],
  ['28P01', 'the password is refused'],
  ['3D000', 'there is no such database'],
  ['53100', 'the disk is full'],
  ['53300', 'too many connections'],
  ['57014', 'somebody cancelled the statement'],
  ['57P01', 'an administrator ended the session'],
  ['57P03', 'the server starts'],
  ['58030', 'the disk fails'],
  ['25006', 'the server is a standby'],
  ['40001', 'a serialization failure'],
  ['40P01', 'a deadlock'],
  ['55P03', 'a lock was not to be had'],
])('SQLSTATE %s, %s: the database is away, and nothing is wrong with the statement', code => {
  expect(isDatabaseUnavailable(said(code))).toBe(true)
  expect(isRefusedStatement(said(code))).toBe(false)
  expect(isRefusedConnection(said(code))).toBe(/^(?:28|3D)/.test(code))
})

test.each([
  ['22P05', 'a character that no database text holds'],
  ['23505', 'a unique violation'],
  ['23514', 'a check of the table'],
  ['42601', 'a mistake in the statement'],
  ['42P01', 'no such table'],
  ['XX000', 'a defect of the server'],
])('SQLSTATE %s, %s: the statement is refused, and the database is there', code => {
  expect(isDatabaseUnavailable(said(code))).toBe(false)
  expect(isRefusedStatement(said(code))).toBe(true)
  expect(isRefusedConnection(said(code))).toBe(false)
})

test.each([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EADDRNOTAVAIL',
])('%s: the database cannot be reached', code => {
  expect(isDatabaseUnavailable(failed(code))).toBe(true)
  expect(isRefusedStatement(failed(code))).toBe(false)
})

test('no answer in time: the database is away', () => {
  expect(isDatabaseUnavailable(new DatabaseTimeout('no answer'))).toBe(true)
})

test.each([
  new Error('without a code'),
  failed('EACCES'),
  failed('UNDEFINED_VALUE'),
  Object.assign(new Error('made up'), { code: 57_014 }),
  { code: '57P01' },
  '57P01',
  undefined,
])('anything else is a mistake of ours: %s', error => {
  expect(isDatabaseUnavailable(error)).toBe(false)
  expect(isRefusedStatement(error)).toBe(false)
})
