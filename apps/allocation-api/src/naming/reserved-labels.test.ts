import { subdomain } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { isReservedLabel, reservedLabels } from './reserved-labels.ts'

describe('every label that the contract names is reserved', () => {
  const named =
    'admin api app catalyst console docs flux gitea harbor imap k8s keycloak mail openbao openova smtp status system vault vpn www'
  test.each(named.split(' '))('%s', label => {
    expect(reservedLabels).toContain(label)
  })
})

describe('every mailbox of RFC 2142 is reserved', () => {
  const mailboxes =
    'info marketing sales support abuse noc security postmaster hostmaster usenet news webmaster www uucp ftp'
  test.each(mailboxes.split(' '))('%s', label => {
    expect(reservedLabels).toContain(label)
  })
})

describe('every name that machines trust by itself is reserved', () => {
  const dangerous =
    'autodiscover autoconfig wpad isatap mta-sts localhost ns1 ns2 mx smtp pop imap admin administrator root ssladmin sslwebmaster'
  test.each(dangerous.split(' '))('%s', label => {
    expect(reservedLabels).toContain(label)
  })
})

test('the list is sorted, and each label is there once', () => {
  expect(reservedLabels).toEqual([...new Set(reservedLabels)].sort())
})

test('each is a label that could be granted otherwise: nothing in the list is without effect', () => {
  expect(reservedLabels.filter(label => subdomain.safeParse(label).data !== label)).toEqual([])
})

test.each(['WWW', 'Www', 'aDMIN', 'MTA-STS'])('the look-up is case-insensitive: %s', label => {
  expect(isReservedLabel(label)).toBe(true)
})

test.each(['acme', 'wwww', 'ww', 'my-api', 'apis', 'www1', '', 'constructor', 'toString'])(
  'not reserved: %j',
  label => {
    expect(isReservedLabel(label)).toBe(false)
  },
)
