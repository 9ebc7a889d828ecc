import { missingPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, test } from 'vitest'
import { createRfc2136Provider } from '../../src/dns/providers/rfc2136/index.ts'
import { startPowerdnsSubject } from './support/powerdns.ts'
import { bind, knot, type ServerKind, startServer, withSettings } from './support/rfc2136.ts'
import { describeTargets, type TargetSubject } from './support/targets.ts'

const describeServer = (
  kind: ServerKind,
  title = kind.name,
  { isSigned = false, gaps }: Pick<TargetSubject, 'isSigned' | 'gaps'> = {},
): void => {
  if (shouldSkip(kind.missingPrograms)) {
    test.skip(kind.missingPrograms ?? '')
    return
  }
  describeTargets(`rfc2136 with ${title}`, async () => {
    const server = await startServer(kind)
    return {
      provider: createRfc2136Provider(server.options()),
      zone: server.zone,
      remove: server.remove,
      dnsPort: server.port,
      isSigned,
      ...(gaps && { gaps }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  })
}
const signing = withSettings(knot, text => text.replace('acl: [full,', 'dnssec-signing: on\n    acl: [full,'))

const policy = (settings: string) =>
  withSettings(bind, text => text.replace('type primary;\n', `type primary;\n  dnssec-policy default; ${settings}\n`))

describe('a resolver gets the answer of the old form or of the new one, never none', () => {
  describeServer(bind)
  describeServer(knot)
  describeServer(signing, 'Knot, which signs the zone', { isSigned: true, gaps: 'hostname' })
  describeServer(policy(''), 'BIND, which signs the zone', { isSigned: true })
  describeServer(policy('inline-signing yes;'), 'BIND, which signs a copy of the zone', { isSigned: true })

  if (shouldSkip(missingPowerdns)) test.skip(missingPowerdns ?? '')
  else
    describeTargets('PowerDNS', async () => {
      const subject = await startPowerdnsSubject()
      return { ...subject, dnsPort: subject.server.dnsPort, gaps: 'delegation' }
    })
  if (!missingPowerdns)
    describeTargets('PowerDNS, which signs the zone', async () => {
      const subject = await startPowerdnsSubject(['gsqlite3-dnssec=yes'])
      await subject.server.call('PUT', `/zones/${subject.zone}.`, { dnssec: true })
      return { ...subject, dnsPort: subject.server.dnsPort, isSigned: true, gaps: 'every' }
    })
})
