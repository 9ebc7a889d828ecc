import { writeFile } from 'node:fs/promises'
import { findProgram } from '@pool/dev/server-process'
import { pdnsSchema, writePdnsFiles } from '@pool/test-kit/dns/powerdns.ts'
import { addresses, findMissingPrograms, keyNames, run, type ServerKind, zoneText } from './server.ts'

const programs = ['pdns_server', 'pdnsutil', ...(pdnsSchema ? [] : ['schema.sqlite3.sql'])]

export const powerdns: ServerKind = {
  name: 'PowerDNS',
  missingPrograms: findMissingPrograms('PowerDNS', programs, 'pdns-server pdns-backend-sqlite3'),
  // Only with a custom script (setting `lua-dnsupdate-policy-script`).
  hasLimitedKeys: false,
  hasTsigErrors: false,
  acceptsUnknownTypes: false,
  maxRecordSets: 200,
  async prepare({ folder, port, zone, zoneFile, secret }) {
    await writeFile(zoneFile, zoneText(zone))
    await writePdnsFiles(folder, [
      'gsqlite3-dnssec=yes',
      `local-address=${addresses.join(',')}`,
      `local-port=${port}`,
      'dnsupdate=yes',
      'allow-dnsupdate-from=127.0.0.0/8,::1',
      'allow-axfr-ips=',
    ])
    const util = (...words: string[]) => run(findProgram('pdnsutil') ?? '', [`--config-dir=${folder}`, ...words])
    await util('load-zone', zone, zoneFile)
    for (const name of keyNames) await util('import-tsig-key', name, 'hmac-sha256', secret)
    await util('set-meta', zone, 'TSIG-ALLOW-AXFR', ...keyNames)
    await util('set-meta', zone, 'TSIG-ALLOW-DNSUPDATE', 'full.key.test')
    await util('set-meta', zone, 'SOA-EDIT-DNSUPDATE', 'INCREASE')
    return [findProgram('pdns_server') ?? '', `--config-dir=${folder}`]
  },
}
