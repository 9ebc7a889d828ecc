import { subdomain } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { isReservedLabel } from './naming.ts'
import { reservedLabels } from './reserved-labels.ts'

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

describe('every name that machines trust without configuration is reserved', () => {
  const dangerous =
    'autodiscover autoconfig wpad isatap mta-sts localhost ns1 ns2 mx smtp pop imap admin administrator root ssladmin sslwebmaster enterpriseenrollment enterpriseregistration lyncdiscover sip sts adfs ns10 mx4 dns3 witness operator'
  test.each(dangerous.split(' '))('%s', label => {
    expect(reservedLabels).toContain(label)
  })
})

test('the list is sorted and has no duplicates', () => {
  expect(reservedLabels).toEqual([...new Set(reservedLabels)].sort())
})

test('every entry is a valid label', () => {
  expect(reservedLabels.filter(label => subdomain.safeParse(label).data !== label)).toEqual([])
})

test.each(['WWW', 'Www', 'aDMIN', 'MTA-STS'])('the lookup is case-insensitive: %s', label => {
  expect(isReservedLabel(label)).toBe(true)
})

test.each(['acme', 'wwww', 'ww', 'my-api', 'apis', 'www1', '', 'constructor', 'toString'])(
  'not reserved: %j',
  label => {
    expect(isReservedLabel(label)).toBe(false)
  },
)
